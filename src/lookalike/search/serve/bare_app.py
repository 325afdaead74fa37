"""An application without routes: whatever goes wrong in it is answered in the one form of errors."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

import lookalike
from lookalike.errors import UserError
from lookalike.search.serve.refusals import Refusal, internal, of_mistake

MESSAGES = {
    400: "The form cannot be read. Send multipart/form-data with a boundary.",
    404: "There is nothing here. GET /docs lists what there is.",
    405: "This address does not take that method. GET /docs lists what it takes.",
}


def bare_app(description: str, lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]]) -> FastAPI:
    app = FastAPI(
        title="lookalike",
        version=lookalike.__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
        description=description,
        redirect_slashes=False,
    )
    for kind in (Refusal, UserError, HTTPException, RequestValidationError, ClientDisconnect, Exception):
        app.add_exception_handler(kind, _refused)
    return app


async def _refused(request: Request, error: Exception) -> Response:
    """Any exception in the one form of errors."""
    if isinstance(error, Refusal):
        refusal = error
    elif isinstance(error, UserError):
        refusal = of_mistake(error)
    elif isinstance(error, HTTPException):
        refusal = Refusal(error.status_code, MESSAGES.get(error.status_code, f"{error.detail}."), error.headers or {})
    elif isinstance(error, RequestValidationError):
        first = error.errors()[0]
        refusal = Refusal(422, f"'{'.'.join(map(str, first['loc']))}' is not valid: {first['msg']}.")
    elif isinstance(error, ClientDisconnect):
        refusal = Refusal(499, "The caller closed the connection before the request was complete.")  # for the log
    else:
        refusal = internal()
    return JSONResponse(refusal.content(request.scope["request"]), refusal.status, dict(refusal.headers))
