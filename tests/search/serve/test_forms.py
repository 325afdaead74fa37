"""Fields of a form one by one, and what the query of a mark is called."""

import asyncio
import io
import json

import pytest
from starlette.datastructures import FormData, UploadFile

from lookalike.image_files import UnreadableError
from lookalike.search.serve.feedback_routes import _query
from lookalike.search.serve.forms import Fields, columns_of
from lookalike.search.serve.pictures import Upload, unreadable
from lookalike.search.serve.refusals import Refusal
from lookalike.search.serve.schema import FeedbackRequest


def file(content):
    return UploadFile(io.BytesIO(content))


def test_a_field_comes_once_and_is_what_it_should_be():
    fields = Fields(FormData([("a", "1"), ("b", "2"), ("b", "3"), ("c", file(b"x")), ("d", file(b""))]))
    assert (fields.text("a"), fields.text("none"), fields.texts("b")) == ("1", None, ["2", "3"])
    assert asyncio.run(fields.file("c")) == b"x"
    assert asyncio.run(fields.file("none")) is None
    for ask, message in (
        (lambda: fields.text("b"), "The field 'b' may come once only."),
        (lambda: fields.text("c"), "The field 'c' is a text, not a file."),
        (lambda: asyncio.run(fields.file("a")), "The field 'a' is a file"),
        (lambda: asyncio.run(fields.file("d")), "A file of the field 'd' is empty."),
        (lambda: fields.check("a", "bb", "c"), "There is no field 'b'. Did you mean 'bb'"),
    ):
        with pytest.raises(Refusal, match=message):
            ask()


def test_the_query_of_a_mark_is_its_picture_its_item_or_its_digest():
    mark = {"item": "hit", "right": True}
    upload = Upload(b"picture")
    assert _query(FeedbackRequest(**mark, query_item="a", query="q"), upload) == upload.digest
    assert _query(FeedbackRequest(**mark, query_item="a", query="q"), None) == "item:a"
    assert _query(FeedbackRequest(**mark, query="q"), None) == "q"
    with pytest.raises(Refusal, match="Feedback names its query"):
        _query(FeedbackRequest(**mark), None)


def test_columns_are_an_object_of_texts_and_numbers():
    assert columns_of(None) == {}
    assert columns_of('{"a": 1, "b": "x"}') == {"a": 1, "b": "x"}
    many = json.dumps({f"n{number}": number for number in range(101)})
    for wrong, message in (
        ("[1]", "The columns are a JSON object of at most 100 names."), (many, "at most 100 names"),
        ("{", "are not a JSON object"), ('{"a": NaN}', "are not a JSON object"), ('{" ": 1}', "cannot be the name"),
        ('{"a<b": 1}', "'a<b' cannot be the name of a column"),
    ):  # fmt: skip
        with pytest.raises(Refusal, match=message):
            columns_of(wrong)


def test_a_picture_that_cannot_be_read_is_too_large_or_wrong():
    assert unreadable(UnreadableError("bomb", "")).status == 413
    refused = unreadable(UnreadableError("truncated", ""))
    assert (refused.status, refused.message) == (422, "The picture cannot be read: it is truncated. Send another file.")
