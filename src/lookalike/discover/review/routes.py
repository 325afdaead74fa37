"""The page of a review and its API, as an application of its own or as a part of another."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response

from lookalike.discover.kept import is_begun
from lookalike.discover.review.desk import Desk
from lookalike.discover.review.view import ReviewForm, Word
from lookalike.errors import UserError
from lookalike.search.index import Index
from lookalike.search.pictures import SIDE
from lookalike.search.serve import page_routes, schema
from lookalike.search.serve.app import THREADS
from lookalike.search.serve.bare_app import bare_app
from lookalike.search.serve.forms import json_of
from lookalike.search.serve.guard import Guard
from lookalike.search.serve.keyring import Keyring
from lookalike.search.serve.meters import Meters
from lookalike.search.serve.refusals import Refusal
from lookalike.search.serve.routes import as_json, body, check_writable, errors
from lookalike.search.serve.settings import Settings
from lookalike.search.stores.places import review_folder

LARGE = 1280  # the longer side of a photo that is looked at alone
SHOWN = 20  # strips, until somebody asks for more
Count = Annotated[int, Query(ge=1, le=2000)]


def add_to(app: FastAPI, settings: Settings, desk: Desk) -> None:
    @app.get("/v1/review", response_model=ReviewForm, responses=errors())
    async def show(count: Count = SHOWN) -> Response:
        """Groups as strips, the next question, and how far it has come."""
        return as_json(await asyncio.to_thread(desk.show, count))

    described = body(("application/json", Word.model_json_schema()))

    @app.post("/v1/review", response_model=ReviewForm, responses=errors(), openapi_extra=described)
    async def say(request: Request, count: Count = SHOWN) -> Response:
        """One change of groups or photos, or one step back. It is on disk when this returns."""
        check_writable(settings)
        word = await json_of(request, Word)
        await asyncio.to_thread(desk.say, word, request.scope["caller"])
        return as_json(await asyncio.to_thread(desk.show, count))

    @app.get("/v1/review/photos/{row}", response_class=Response, responses=errors(404))
    async def picture(row: int, large: bool = False) -> Response:
        """A photo, upright, and small or as large as a page shows it."""
        content = await asyncio.to_thread(desk.picture, row, LARGE if large else SIDE)
        if content is None:
            raise Refusal(404, "This photo is not there any more.")
        return Response(content, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=600"})


def add_begun(app: FastAPI, settings: Settings) -> None:
    """The page of a review beside the search of its index, where `lookalike review` or `ask` has begun one."""
    place = review_folder(settings.place)
    if is_begun(place):
        add_to(app, settings, Desk(place, Index.open(settings.place), read_only=settings.read_only))
        page_routes.add_page(app, "/review", "review.html")


def create_app(settings: Settings, meters: Meters, ready: Callable[[], None], _: Callable[[Exception], None]) -> Guard:
    """The application of a review alone; its place is that of the photos or the index."""

    source, keyring = str(settings.place), Keyring(settings.token)
    index = Index.open(source) if Index.exists(source) else None

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, "other"))
        looking = asyncio.create_task(_known_keys(keyring, index, settings.look))
        ready()
        yield
        looking.cancel()

    if index is not None:
        keyring.refresh(index.store.log)
    app = bare_app("Name and mend groups of photos.", lifespan)
    add_to(app, settings, Desk(review_folder(source), index, source, settings.read_only))

    @app.get("/v1/health", response_model=schema.HealthForm, responses=errors())
    async def health() -> Response:
        """Always ready: groups are found before it starts."""
        return as_json(schema.HealthForm(ready=True))

    page_routes.add_to(app, {"/": "review.html", "/review": "review.html"})
    return Guard(app, settings, meters, keyring)


async def _known_keys(keyring: Keyring, index: Index | None, pause: float) -> None:
    """Look for keys of the index that were given or taken back."""
    while index is not None:
        await asyncio.sleep(pause)
        with suppress(UserError):
            await asyncio.to_thread(keyring.refresh, index.store.log)
