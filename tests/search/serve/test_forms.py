"""Fields of a form one by one, and what the query of a mark is called."""

import asyncio
import io
import json

import pytest
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from lookalike.image_files import UnreadableError
from lookalike.search.serve.feedback_routes import _query
from lookalike.search.serve.forms import (
    CONDITIONS,
    JSON,
    LONGEST_ID,
    LONGEST_QUERY,
    VALUES,
    Fields,
    _filter,
    _fits,
    _texts,
    box_of,
    checked_text,
    columns_of,
    feedback_of,
    form_of,
    item_of,
    json_of,
    kind_of,
    search_of,
)
from lookalike.search.serve.pictures import Upload, unreadable
from lookalike.search.serve.refusals import Refusal
from lookalike.search.serve.schema import FeedbackRequest, SearchRequest
from lookalike.search.serve.settings import Settings
from tests.search.serve.client import multipart


def file(content):
    return UploadFile(io.BytesIO(content))


def request(body, kind):
    """A request whose body comes in two parts."""
    parts = [body[:50], body[50:]]

    async def receive():
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    headers = [(b"content-type", kind.encode())]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive)


def form(*fields):
    return request(*multipart(fields))


def as_json(content):
    return request(json.dumps(content).encode(), "Application/JSON ; charset=utf-8")


def refused(work):
    """The status and the sentence of a refusal."""
    with pytest.raises(Refusal) as error:
        asyncio.run(work) if asyncio.iscoroutine(work) else work()
    return error.value.status, error.value.message


def test_a_field_comes_once_and_is_what_it_should_be():
    fields = Fields(FormData([("a", "1"), ("b", "2"), ("b", "3"), ("c", file(b"x")), ("d", file(b""))]))
    assert (fields.text("a"), fields.text("none"), fields.texts("b")) == ("1", None, ["2", "3"])
    assert asyncio.run(fields.file("c")) == b"x"
    assert asyncio.run(fields.file("none")) is None
    for ask, message in (
        (lambda: fields.text("b"), "The field 'b' may appear only once."),
        (lambda: fields.text("c"), "The field 'c' must be text, not a file."),
        (lambda: asyncio.run(fields.file("a")), "The field 'a' is a file"),
        (lambda: asyncio.run(fields.file("d")), "A file of the field 'd' is empty."),
        (lambda: fields.check("a", "bb", "c"), "There is no field 'b'. Did you mean 'bb'"),
    ):
        with pytest.raises(Refusal, match=message) as error:
            ask()
        assert error.value.status == 422


def test_the_query_of_a_mark_is_its_picture_its_item_or_its_digest():
    mark = {"item": "hit", "right": True}
    upload = Upload(b"picture")
    assert _query(FeedbackRequest(**mark, query_item="a", query="q"), upload) == upload.digest
    assert _query(FeedbackRequest(**mark, query_item="a", query="q"), None) == "item:a"
    assert _query(FeedbackRequest(**mark, query="q"), None) == "q"
    with pytest.raises(Refusal, match="Feedback must name its query"):
        _query(FeedbackRequest(**mark), None)


def test_columns_are_an_object_of_texts_and_numbers():
    assert columns_of(None) == {}
    assert columns_of('{"a": 1, "b": "x"}') == {"a": 1, "b": "x"}
    many = json.dumps({f"n{number}": number for number in range(101)})
    for wrong, message in (
        ("[1]", "The columns must be a JSON object of at most 100 names."),
        (many, "at most 100 names"),
        ("{", "are not a JSON object"),
        ('{"a": NaN}', "are not a JSON object"),
        ('{" ": 1}', "cannot be the name"),
        ('{"a<b": 1}', "'a<b' cannot be the name of a column"),
    ):
        with pytest.raises(Refusal, match=message):
            columns_of(wrong)


def test_a_picture_that_cannot_be_read_is_too_large_or_wrong():
    assert unreadable(UnreadableError("bomb", "")).status == 413
    refused = unreadable(UnreadableError("truncated", ""))
    assert (refused.status, refused.message) == (422, "The picture cannot be read: it is truncated. Send another file.")


SETTINGS = Settings("shop", hits=30, examples=4)


def search(request):
    return asyncio.run(search_of(request, SETTINGS))


def test_a_search_by_form_has_all_its_fields():
    query = search(
        form(
            ("image", b"one"),
            ("not_image", b"two"),
            ("not_image", b"three"),
            ("item", "a"),
            ("box", "1,2,3,4"),
            ("where", "price<20"),
            ("group", "brand"),
            ("k", "30"),
        )
    )
    assert query.images == [Upload(b"one", (1, 2, 3, 4))]
    assert query.not_images == [Upload(b"two"), Upload(b"three")]
    assert (query.items, query.not_items, query.group, query.k) == (["a"], [], "brand", 30)
    assert [condition.column for condition in query.where] == ["price"]
    assert search(form(("image", b"one"))).k == 12


def test_a_search_by_json_has_all_its_fields():
    query = search(as_json({"item": "a", "not_item": ["b"], "where": "brand=x", "group": "brand", "k": 3}))
    assert (query.images, query.items, query.not_items, query.group, query.k) == ((), ["a"], ["b"], "brand", 3)
    assert len(query.where) == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([("image", b"x"), ("k", "31")], "k must be a whole number from 1 to 30."),
        ([("image", b"x"), ("k", "0")], "k must be a whole number from 1 to 30."),
        ([("image", b"x"), ("k", "many")], "k must be a whole number from 1 to 30."),
        ([("image", b"x"), ("k", "1" * 10)], "k must be a whole number from 1 to 30."),
        ([("item", "x"), ("box", "1,2,3,4")], "A box belongs to exactly one image."),
        ([("image", b"x"), ("image", b"y"), ("box", "1,2,3,4")], "A box belongs to exactly one image."),
        ([("not_item", "x")], "Send something to search for"),
        ([("item", "x")] * 4 + [("not_image", b"x")], "A search takes at most 4 examples."),
        ([("item", "x\x00")], "The field 'item' contains a zero byte."),
        ([("imagge", b"x")], "There is no field 'imagge'. Did you mean 'image'?"),
    ],
)
def test_a_search_that_cannot_be_is_refused(fields, message):
    status, text = refused(search_of(form(*fields), SETTINGS))
    assert (status, text.startswith(message)) == (422, True), text


def test_as_many_examples_as_are_allowed():
    fields = [("item", "x")] * 2 + [("not_item", "y"), ("not_image", b"z")]
    assert len(search(form(*fields)).items) == 2


def test_conditions_have_limits():
    assert len(_filter(["brand=x"] * CONDITIONS)) == CONDITIONS
    assert refused(lambda: _filter(["brand=x"] * (CONDITIONS + 1)))[0] == 422
    many = [f"price=[{','.join(map(str, range(VALUES // 2)))}]"] * 2
    assert len(_filter(many)) == 2
    assert refused(lambda: _filter([*many, "brand=x"])) == (
        422,
        f"The conditions of a search name at most {VALUES} values.",
    )
    assert refused(lambda: _filter(["price"]))[0] == 400
    assert (_texts("a", "item"), _texts(["a", "b"], "item")) == (["a"], ["a", "b"])


def test_kinds_of_bodies():
    assert kind_of(request(b"", "Multipart/Form-Data; boundary=x")) == "multipart/form-data"

    async def names(request):
        async with form_of(request) as fields:
            return list(fields.form)

    assert asyncio.run(names(form(("a", "1"), ("b", b"2")))) == ["a", "b"]
    assert refused(names(request(b"x", "text/plain")))[0] == 415


def test_json_that_is_wrong_is_refused():
    def answer(body):
        return refused(json_of(request(body, "application/json"), SearchRequest))

    assert answer(b"{") == (400, "The body is not JSON.")
    assert answer(b"[" * 60_000) == (400, "The body is not JSON.")
    assert answer(b'{"k": 0}')[0] == 422
    assert answer(b'{"k": 0}')[1].startswith("'k' is not valid: ")
    assert answer(b"[]")[1].startswith("'the body' is not valid: ")
    assert answer(b" " * (JSON + 1))[0] == 413
    fits = b'{"k": 1}'.ljust(JSON)
    assert asyncio.run(json_of(request(fits, "application/json"), SearchRequest)).k == 1


def test_texts_can_be_stored():
    assert checked_text("é", "x") == "é"
    assert refused(lambda: checked_text("\ud800", "x")) == (422, "The field 'x' contains half a character.")
    assert refused(lambda: checked_text("\x00", "x")) == (422, "The field 'x' contains a zero byte.")


def test_boxes():
    assert (box_of(None), box_of(""), box_of("0,10,200,999999")) == (None, None, (0, 10, 200, 999_999))
    for wrong in ("1,2,3", "1,2,3,4,5", "1,2,3,-4", "1,2,3,1000000", "\u00b2,1,1,1", "1,2,3,"):
        assert refused(lambda wrong=wrong: box_of(wrong))[0] == 422


def test_a_new_item():
    item, upload = asyncio.run(
        item_of(form(("image", b"x"), ("id", "a"), ("label", "figs"), ("columns", '{"price": 3}')))
    )
    assert (item.id, item.label, item.columns, upload) == ("a", "figs", {"price": 3}, Upload(b"x"))
    items = [asyncio.run(item_of(form(("image", b"x"), ("label", ""))))[0] for _ in range(2)]
    assert len({item.id for item in items}) == 2
    assert items[0].label is None
    assert refused(item_of(form(("id", "a")))) == (422, "Send the picture of the item as the field image.")
    assert asyncio.run(item_of(form(("image", b"x"), ("id", "i" * LONGEST_ID))))[0].id == "i" * LONGEST_ID
    for wrong in ("", "i" * (LONGEST_ID + 1)):
        assert refused(item_of(form(("image", b"x"), ("id", wrong))))[0] == 422


def test_numbers_of_columns_fit_into_64_bits():
    for value, fits in ((2**63 - 1, True), (2**63, False), (-(2**63), True), (-(2**63) - 1, False), ("x", True)):
        assert _fits(value) is fits
    assert columns_of(f'{{"a": {-(2**63)}, "b": null, "c": 0.5, "d": true}}')["a"] == -(2**63)
    for wrong in (f'{{"a": {2**63}}}', '{"a": []}', '{"a": {}}'):
        assert refused(lambda wrong=wrong: columns_of(wrong)) == (
            422,
            "The column 'a' must be text, a number or null.",
        )


def test_feedback_by_form_may_bring_the_picture_of_its_query():
    mark, upload = asyncio.run(
        feedback_of(form(("image", b"x"), ("box", "1,2,3,4"), ("item", "hit"), ("right", "false")))
    )
    assert upload == Upload(b"x", (1, 2, 3, 4))
    assert (mark.item, mark.right, mark.query, mark.query_item) == ("hit", False, None, None)
    query = "q" * LONGEST_QUERY
    mark, upload = asyncio.run(
        feedback_of(form(("query", query), ("query_item", "a"), ("item", "hit"), ("right", "true")))
    )
    assert upload is None
    assert (mark.query, mark.query_item, mark.right) == (query, "a", True)
    for fields in (
        [("item", "hit")],
        [("right", "true")],
        [("item", "hit"), ("right", "yes")],
        [("item", "hit"), ("right", "true"), ("query", query + "q")],
    ):
        assert refused(feedback_of(form(*fields)))[0] == 422


def test_feedback_by_json():
    mark, upload = asyncio.run(feedback_of(as_json({"query": "q", "item": "hit", "right": True})))
    assert (mark, upload) == (FeedbackRequest(query="q", item="hit", right=True), None)
    assert refused(feedback_of(as_json({"item": "hit\x00", "right": True}))) == (
        422,
        "The field 'feedback' contains a zero byte.",
    )
