"""Marks over the API: a hit is right or wrong, and back again."""

import asyncio
from datetime import UTC, datetime

from fastapi import FastAPI, Request, Response

from lookalike.search.items import Mark
from lookalike.search.serve import schema
from lookalike.search.serve.engine import Engine
from lookalike.search.serve.forms import checked_text, feedback_of
from lookalike.search.serve.item_routes import item_named
from lookalike.search.serve.pictures import Upload
from lookalike.search.serve.refusals import Refusal
from lookalike.search.serve.routes import as_json, body, check_writable, errors
from lookalike.search.serve.settings import Settings

LISTED = 200  # marks without a query


def add_to(app: FastAPI, engine: Engine, settings: Settings) -> None:
    described = body(
        ("application/json", schema.FeedbackRequest.model_json_schema()),
        ("multipart/form-data", schema.FEEDBACK_FORM),
    )

    @app.post(
        "/v1/feedback",
        response_model=schema.MarkForm,
        status_code=201,
        responses=errors(404, 415),
        openapi_extra=described,
    )
    async def mark(request: Request) -> Response:
        """Mark a hit as right or wrong. It changes no search; `lookalike labels` writes all marks out."""
        check_writable(settings)
        engine.check_free()
        form, upload = await feedback_of(request)
        for name in (form.item, form.query_item):
            if name is not None:
                await asyncio.to_thread(item_named, engine.index.store, name)
        picture = None if upload is None else await engine.upright(upload)
        query = _query(form, upload)
        mark = Mark(query, form.query_item, form.item, form.right, by=form.by or None)
        number = await engine.mark(mark, picture, request.scope["caller"])
        return as_json(schema.MarkForm(feedback=number, query=query, item=form.item, right=form.right), 201)

    @app.get("/v1/feedback", response_model=schema.MarksForm, responses=errors())
    async def listed(query: str = "") -> Response:
        """The marks of a query, as the search called it; without one the latest of all, newest first."""
        marks = engine.index.store.marks
        name = checked_text(query, "query")
        found = await asyncio.to_thread(lambda: marks.of(name) if name else marks.every()[: -LISTED - 1 : -1])
        return as_json(schema.MarksForm(marks=[_form(mark) for mark in found]))

    @app.delete("/v1/feedback/{number}", response_model=schema.UnmarkedForm, responses=errors(404))
    async def unmark(request: Request, number: int) -> Response:
        """Take a mark back."""
        check_writable(settings)
        if not 0 < number < 2**63 or not await engine.unmark(number, request.scope["caller"]):
            raise Refusal(404, "There is no feedback with this number: it was taken back or replaced.")
        return as_json(schema.UnmarkedForm(undone=number))


def _form(mark: Mark) -> schema.MarkedForm:
    at = None if mark.at is None else datetime.fromtimestamp(mark.at, UTC).isoformat(timespec="seconds")
    return schema.MarkedForm(feedback=mark.number, item=mark.item, right=mark.right, by=mark.by, at=at)


def _query(form: schema.FeedbackRequest, upload: Upload | None) -> str:
    """What the query of a mark is called."""
    if upload is not None:
        return upload.digest
    if form.query_item is not None:
        return f"item:{form.query_item}"
    if form.query:
        return form.query
    raise Refusal(422, "Feedback must name its query: query_item, query, or the image itself.")
