"""What all routes share: the refusals they may answer with, their bodies, and how an answer is sent."""

from typing import Any

from fastapi import Response
from pydantic import BaseModel

from lookalike.search.serve import schema
from lookalike.search.serve.refusals import Refusal
from lookalike.search.serve.settings import Settings


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals that a route may answer with, beside those of the door."""
    always = (400, 401, 403, 405, 408, 413, 422, 429, 500, 503)
    return {status: {"model": schema.Error} for status in sorted({*always, *statuses})}


def body(*kinds: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {kind: {"schema": form} for kind, form in kinds}}}


def check_writable(settings: Settings) -> None:
    if settings.read_only:
        raise Refusal(403, "This server is read-only: it was started with --read-only.")


def as_json(form: BaseModel, status: int = 200) -> Response:
    return Response(form.model_dump_json(), status, media_type="application/json")
