"""Fields of a form one by one, and what the query of a mark is called."""

import asyncio
import io

import pytest
from starlette.datastructures import FormData, UploadFile

from lookalike.search.serve.feedback_routes import _query
from lookalike.search.serve.forms import Fields
from lookalike.search.serve.pictures import Upload
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
