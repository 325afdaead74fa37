"""The application of one worker. Whatever may block runs in a thread; the event loop only moves bytes."""

import asyncio
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import PlainTextResponse

from lookalike.errors import UserError
from lookalike.search.log import shown
from lookalike.search.serve import feedback_routes, item_routes, page_routes, schema
from lookalike.search.serve.bare_app import bare_app
from lookalike.search.serve.engine import Engine
from lookalike.search.serve.forms import checked_text, search_of, why_of
from lookalike.search.serve.guard import Guard
from lookalike.search.serve.item_routes import item_named
from lookalike.search.serve.meters import Meters
from lookalike.search.serve.refusals import Refusal
from lookalike.search.serve.routes import as_json, body, errors
from lookalike.search.serve.settings import Settings
from lookalike.search.serve.views import Overview, answer_form

THREADS = 2
KEEP = 60.0  # seconds between writing down what was seen of queries
CANARIES = 60  # minutes between asking for known pictures


def create_app(
    settings: Settings,
    meters: Meters | None = None,
    ready: Callable[[], None] = lambda: None,
    failed: Callable[[Exception], None] = lambda _: None,
    further: Sequence[Callable[[FastAPI, Settings], None]] = (),
) -> Guard:
    """The ASGI application of one worker; it calls `ready` when it can answer, or `failed` with why it never will.

    `further` adds routes of other rooms.
    """
    meters = meters or Meters()
    engine = Engine(settings, meters)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # for what is not a search: each thread has a connection, and each connection a cache
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, "other"))
        starting = asyncio.create_task(_started(engine, ready, failed))
        if settings.workers > 1:  # one of several accepts nothing before it can answer: the others do
            await starting
        tasks = [asyncio.create_task(_kept_ready(engine, starting, failed)), asyncio.create_task(_watching(engine))]
        yield
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await _tried(engine.keep)
        await asyncio.to_thread(engine.stop)

    app = bare_app("Search by image: what looks like this?", lifespan)
    app.state.engine = engine
    _search_routes(app, engine, settings)
    item_routes.add_to(app, engine, settings)
    feedback_routes.add_to(app, engine, settings)
    _state_routes(app, engine, settings, meters)
    page_routes.add_to(app)
    for add in further:
        add(app, settings)
    return Guard(app, settings, meters, engine.keyring)


async def _started(engine: Engine, ready: Callable[[], None], failed: Callable[[Exception], None]) -> bool:
    try:
        await asyncio.to_thread(engine.start)
    except Exception as error:  # a model that cannot be loaded, a disk that is full: nothing that waiting would help
        failed(error)
        return False
    ready()
    return True


async def _kept_ready(engine: Engine, starting: Awaitable[bool], failed: Callable[[Exception], None]) -> None:
    if not await starting:
        return
    while not engine.hangs:
        await asyncio.sleep(engine.settings.look)
        await _tried(engine.look_ahead)
    failed(UserError("several searches hang: lookalike status INDEX --check says whether the index is damaged"))


async def _watching(engine: Engine) -> None:
    """Ask for known pictures now and then, and keep what was seen of the others."""
    for minute in count():
        await asyncio.sleep(KEEP if minute else engine.settings.look)
        if engine.ready and minute % CANARIES == 0:
            with suppress(Refusal, UserError):
                await engine.try_canaries()
        await _tried(engine.keep)


async def _tried(work: Callable[[], object]) -> None:
    """Work that is repeated: what fails now may succeed the next time."""
    try:
        await asyncio.to_thread(work)
    except UserError:
        pass
    except Exception:
        traceback.print_exc(file=sys.stderr)  # for the operator


def _search_routes(app: FastAPI, engine: Engine, settings: Settings) -> None:
    described = body(
        ("multipart/form-data", schema.SEARCH_FORM), ("application/json", schema.SearchRequest.model_json_schema())
    )

    @app.post("/v1/search", response_model=schema.AnswerForm, responses=errors(404, 415, 504), openapi_extra=described)
    async def search(request: Request) -> Response:
        """The nearest items of pictures and items, and whether to believe the best of them."""
        engine.check_free()  # before the body is read: who must wait should not send it in vain
        query = await search_of(request, settings)
        answer, times = await engine.search(query)
        return as_json(answer_form(answer, engine.items, times, query.name))

    described_why = body(
        ("multipart/form-data", schema.WHY_FORM), ("application/json", schema.WhyRequest.model_json_schema())
    )

    @app.post("/v1/why", response_model=schema.WhyForm, responses=errors(404, 415, 504), openapi_extra=described_why)
    async def why(request: Request) -> Response:
        """How much of a hit's similarity comes from which places of both pictures; it all adds up."""
        engine.check_free()
        query, item = await why_of(request)
        for name in (item, query):
            if isinstance(name, str):
                await asyncio.to_thread(item_named, engine.index.store, name)
        return as_json(schema.WhyForm(**(await engine.why(query, item)).as_json()))


def _state_routes(app: FastAPI, engine: Engine, settings: Settings, meters: Meters) -> None:
    overview = Overview(engine.index, settings)

    @app.get("/v1/index", response_model=schema.IndexForm, responses=errors())
    async def index() -> Response:
        """What is in the index, what can be asked of it, and how far to believe its answers."""
        return as_json(await asyncio.to_thread(overview.form))

    @app.get("/v1/labels", response_model=schema.LabelsForm, responses=errors())
    async def labels(
        find: str = "",
        offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
        limit: Annotated[int, Query(ge=1, le=200)] = 48,
    ) -> Response:
        """Classes by a part of their names, in natural order; one that is called exactly so comes first."""
        return as_json(await asyncio.to_thread(overview.labels, checked_text(find, "find"), offset, limit))

    @app.get("/v1/health", response_model=schema.HealthForm, responses=errors())
    async def health() -> Response:
        """Ready when the model and the cache are loaded; 503 before."""
        if not engine.ready:
            return as_json(schema.HealthForm(ready=False), 503)
        return as_json(schema.HealthForm(ready=True))

    @app.get("/v1/log", response_model=schema.LogForm, responses=errors())
    async def log() -> Response:
        """Who did what, latest entries; items are named by the digest of their id. Needs a key with the scope admin."""
        entries = await asyncio.to_thread(engine.index.store.log.entries, (), None, schema.LAST)
        return as_json(schema.LogForm(entries=[schema.EntryForm(**shown(entry)) for entry in entries]))

    @app.get("/v1/watch", response_model=schema.WatchForm, responses=errors())
    async def watch() -> Response:
        """Daily figures about the queries, and whether they are still like those the index was calibrated for."""
        return as_json(await asyncio.to_thread(engine.watcher.form))

    @app.get("/v1/metrics", response_class=PlainTextResponse, responses=errors())
    async def metrics() -> Response:
        """Counters and histograms of all workers, as Prometheus reads them."""
        form = await asyncio.to_thread(overview.form)
        text = meters.text(form.items) + await asyncio.to_thread(engine.watcher.text)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")
