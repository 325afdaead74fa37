"""Every refusal has one form: a code for programs, a sentence for people, a request id."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lookalike.errors import UserError
from lookalike.search.stores import BadValueError, StorageError, UnknownItemError

CODES = {
    400: "bad_request",
    401: "no_token",
    403: "forbidden",
    404: "not_found",
    405: "wrong_method",
    408: "too_slow",
    409: "conflict",
    413: "too_large",
    415: "wrong_type",
    422: "bad_value",
    429: "busy",
    499: "gone",
    500: "internal",
    503: "not_ready",
    504: "given_up",
}
QUOTED = 80  # characters of what a caller has sent


@dataclass
class Refusal(Exception):  # noqa: N818 - not every one is an error
    """A request that is not answered, and why."""

    status: int
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def content(self, request: str) -> dict[str, Any]:
        code = CODES.get(self.status, "error")
        message = self.message.encode(errors="replace").decode()  # it may quote halves of characters
        return {"error": {"code": code, "message": message, "request_id": request}}


def busy(seconds: int = 1) -> Refusal:
    return Refusal(429, "The server is busy. Try again in a moment.", {"Retry-After": str(seconds)})


def crowded() -> Refusal:
    return Refusal(
        429, "Too many connections are open. Try again in a moment.", {"Retry-After": "2", "Connection": "close"}
    )


def not_ready() -> Refusal:
    return Refusal(503, "The index is being loaded. Try again in a few seconds.", {"Retry-After": "2"})


def internal() -> Refusal:
    return Refusal(500, "Something went wrong inside the server. Report the request id to its operator.")


def given_up(seconds: float) -> Refusal:
    took = f"The answer took longer than {seconds:g} seconds and was given up."
    return Refusal(504, f"{took} Report the request id to the operator of the server.")


def no_item(name: str) -> Refusal:
    return Refusal(404, f"There is no item '{shortened(name)}'. Percent-encode its whole id, slashes included.")


def of_mistake(mistake: UserError) -> Refusal:
    """A mistake in the request; a failure of the storage does not show the caller where it is."""
    if isinstance(mistake, StorageError):
        return Refusal(503, "The index cannot be read or written just now. Try again.", {"Retry-After": "5"})
    if isinstance(mistake, UnknownItemError):
        return no_item(mistake.id)
    text = str(mistake)
    return Refusal(
        422 if isinstance(mistake, BadValueError) else 400,
        f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', '!')) else '.'}",
    )


def shortened(text: str) -> str:
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}…"
