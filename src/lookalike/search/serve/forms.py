"""Requests as they come in: forms and JSON, every field checked, unknown ones refused."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from typing import Any, TypeVar
from uuid import uuid4

from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.datastructures import FormData, UploadFile

from lookalike.errors import UserError
from lookalike.search import filters
from lookalike.search.items import Item, Value
from lookalike.search.queries import Box
from lookalike.search.serve.engine import Query
from lookalike.search.serve.pictures import Upload
from lookalike.search.serve.refusals import Refusal, of_mistake, shortened
from lookalike.search.serve.schema import FeedbackRequest, SearchRequest, WhyRequest
from lookalike.search.serve.settings import Settings

FIELDS, FILES, LONGEST = 200, 40, 100_000  # of one form; bytes of a field that is not a file
LONGEST_ID = 500
DIGITS = 6  # of a number in a box
CONDITIONS, VALUES = 50, 500  # of one search
JSON = 64_000  # bytes of a body without pictures
LONGEST_QUERY, LONGEST_NAME = 64, 100
Form = TypeVar("Form", bound=BaseModel)
Content = TypeVar("Content", str, bytes)


@dataclass(frozen=True)
class Fields:
    """A form, field by field."""

    form: FormData

    def check(self, *known: str) -> None:
        for name in self.form:
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f" Did you mean '{near[0]}'?" if near else ""
                raise Refusal(422, f"There is no field '{shortened(name)}'.{hint} Possible: {', '.join(known)}.")

    def texts(self, name: str) -> list[str]:
        values = self.form.getlist(name)
        if not all(isinstance(value, str) for value in values):
            raise Refusal(422, f"The field '{name}' must be text, not a file.")
        return [checked_text(str(value), name) for value in values]

    def text(self, name: str) -> str | None:
        return _at_most_one(self.texts(name), name)

    async def files(self, name: str) -> list[bytes]:
        values = self.form.getlist(name)
        if not all(isinstance(value, UploadFile) for value in values):
            raise Refusal(422, f"The field '{name}' is a file: send the picture itself.")
        contents = [await value.read() for value in values if isinstance(value, UploadFile)]
        if not all(contents):
            raise Refusal(422, f"A file of the field '{name}' is empty.")
        return contents

    async def file(self, name: str) -> bytes | None:
        return _at_most_one(await self.files(name), name)


def _at_most_one(values: Sequence[Content], name: str) -> Content | None:
    if len(values) > 1:
        raise Refusal(422, f"The field '{name}' may appear only once.")
    return values[0] if values else None


def kind_of(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


@asynccontextmanager
async def form_of(request: Request) -> AsyncIterator[Fields]:
    if kind_of(request) != "multipart/form-data":
        raise Refusal(415, "Send multipart/form-data (curl -F) or, without pictures, application/json.")
    async with request.form(max_files=FILES, max_fields=FIELDS, max_part_size=LONGEST) as form:
        yield Fields(form)


async def json_of(request: Request, form: type[Form]) -> Form:
    received = bytearray()
    async for part in request.stream():
        received += part
        if len(received) > JSON:
            raise Refusal(413, f"A JSON body has at most {JSON:,} bytes. Send fewer examples or conditions.")
    try:
        content = json.loads(received)
    except (ValueError, RecursionError):
        raise Refusal(400, "The body is not JSON.") from None
    try:
        return form.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the body"
        raise Refusal(422, f"'{shortened(place)}' is not valid: {first['msg']}.") from None


def checked_text(text: str, name: str) -> str:
    """A text that can be stored: no zero bytes, no halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refusal(422, f"The field '{name}' contains half a character.") from None
    if "\x00" in text:
        raise Refusal(422, f"The field '{name}' contains a zero byte.")
    return text


async def search_of(request: Request, settings: Settings) -> Query:
    """The search that a request describes."""
    if kind_of(request) == "application/json":
        content = await json_of(request, SearchRequest)
        query = Query(
            items=_texts(content.item, "item"),
            not_items=_texts(content.not_item, "not_item"),
            where=_filter(_texts(content.where, "where")),
            group=None if content.group is None else checked_text(content.group, "group"),
            k=content.k,
        )
        return _checked(query, settings)
    async with form_of(request) as fields:
        fields.check("image", "not_image", "item", "not_item", "box", "where", "group", "k")
        images, others = await fields.files("image"), await fields.files("not_image")
        box = box_of(fields.text("box"))
        if box is not None and len(images) != 1:
            raise Refusal(422, "A box belongs to exactly one image.")
        k = fields.text("k")
        if k is not None and not (k.isascii() and k.isdigit() and len(k) < 10):
            raise Refusal(422, f"k must be a whole number from 1 to {settings.hits}.")
        query = Query(
            [Upload(image, box) for image in images],
            fields.texts("item"),
            [Upload(other) for other in others],
            fields.texts("not_item"),
            _filter(fields.texts("where")),
            fields.text("group"),
            Query.k if k is None else int(k),
        )
        return _checked(query, settings)


def _checked(query: Query, settings: Settings) -> Query:
    if not 1 <= query.k <= settings.hits:
        raise Refusal(422, f"k must be a whole number from 1 to {settings.hits}.")
    if not query.images and not query.items:
        raise Refusal(422, "Send something to search for: image (a file) or item (an id).")
    examples = (query.images, query.items, query.not_images, query.not_items)
    if sum(map(len, examples)) > settings.examples:
        raise Refusal(422, f"A search takes at most {settings.examples} examples.")
    return query


def _filter(where: Sequence[str]) -> filters.Filter:
    if len(where) > CONDITIONS:
        raise Refusal(422, f"A search takes at most {CONDITIONS} conditions.")
    try:
        conditions = filters.parse(where)
    except (UserError, RecursionError) as mistake:
        raise of_mistake(UserError(str(mistake))) from None
    if sum(len(condition.values) for condition in conditions) > VALUES:
        raise Refusal(422, f"The conditions of a search name at most {VALUES} values.")
    return conditions


def _texts(value: str | list[str], name: str) -> list[str]:
    """The texts of a field that may have one or several."""
    return [checked_text(text, name) for text in ([value] if isinstance(value, str) else value)]


def box_of(text: str | None) -> Box | None:
    if text is None or text == "":
        return None
    parts = text.split(",")
    if len(parts) != 4 or not all(part.isascii() and part.isdigit() and len(part) <= DIGITS for part in parts):
        raise Refusal(422, "A box is x,y,width,height in whole pixels, such as 10,20,100,80.")
    x, y, width, height = (int(part) for part in parts)
    return x, y, width, height


async def item_of(request: Request) -> tuple[Item, Upload]:
    """A new item and its picture."""
    async with form_of(request) as fields:
        fields.check("image", "id", "label", "columns")
        content, id_, label = await fields.file("image"), fields.text("id"), fields.text("label")
        columns = columns_of(fields.text("columns"))
    if content is None:
        raise Refusal(422, "Send the picture of the item as the field image.")
    id_ = uuid4().hex if id_ is None else id_
    if not 0 < len(id_) <= LONGEST_ID:
        raise Refusal(422, f"An id has from 1 to {LONGEST_ID} characters.")
    return Item(id_, None, label or None, columns), Upload(content)


def columns_of(text: str | None) -> Mapping[str, Value]:
    """The columns of a new item: a JSON object of texts and numbers."""
    try:
        content = json.loads(text or "{}", parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise Refusal(422, "The columns are not a JSON object.") from None
    if not isinstance(content, dict) or len(content) > 100:
        raise Refusal(422, "The columns must be a JSON object of at most 100 names.")
    for name, value in content.items():
        checked_text(name, "columns")
        if isinstance(value, str):
            checked_text(value, "columns")
        if not name.strip() or any(sign in name for sign in "=!<>"):
            raise Refusal(
                422, f"'{shortened(name)}' cannot be the name of a column: it is empty or holds =, !, < or >."
            )
        if not (value is None or isinstance(value, str | bool | float | int)) or not _fits(value):
            raise Refusal(422, f"The column '{shortened(name)}' must be text, a number or null.")
    return content


def _fits(value: Any) -> bool:
    if isinstance(value, float):
        return isfinite(value)  # 1e999 is not
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def _refuse_constant(text: str) -> Any:
    raise ValueError(text)


async def why_of(request: Request) -> tuple[Upload | str, str]:
    """The picture, or the id of the item, that was searched for, and the id of the hit."""
    if kind_of(request) == "application/json":
        ids = await json_of(request, WhyRequest)
        return checked_text(ids.query_item, "query_item"), checked_text(ids.item, "item")
    async with form_of(request) as fields:
        fields.check("image", "box", "item")
        image, item, box = await fields.file("image"), fields.text("item"), box_of(fields.text("box"))
    if image is None or item is None:
        raise Refusal(422, "Send the picture that was searched for as the field image, and the id of the hit as item.")
    return Upload(image, box), item


async def feedback_of(request: Request) -> tuple[FeedbackRequest, Upload | None]:
    """A mark, with the picture of its query where that was sent along."""
    if kind_of(request) == "application/json":
        mark = await json_of(request, FeedbackRequest)
        for text in (mark.query, mark.query_item, mark.item, mark.by):
            checked_text(text or "", "feedback")
        return mark, None
    async with form_of(request) as fields:
        fields.check("image", "box", "query", "query_item", "item", "right", "by")
        image, right, item = await fields.file("image"), fields.text("right"), fields.text("item")
        if item is None or right not in ("true", "false"):
            raise Refusal(422, "Feedback must name the item of the hit and say right: true or false.")
        upload = None if image is None else Upload(image, box_of(fields.text("box")))
        query, by = fields.text("query"), fields.text("by")
        for name, text, most in (("query", query, LONGEST_QUERY), ("by", by, LONGEST_NAME)):
            if len(text or "") > most:
                raise Refusal(422, f"The field '{name}' of feedback has at most {most} characters.")
        form = FeedbackRequest(
            query=query, query_item=fields.text("query_item"), item=item, right=right == "true", by=by
        )
        return form, upload
