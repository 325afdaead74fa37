"""Items over the API: add, look at, remove."""

import asyncio
import time
from dataclasses import replace
from urllib.parse import unquote

from fastapi import FastAPI, Request, Response

from lookalike.search.items import Item
from lookalike.search.serve import schema
from lookalike.search.serve.engine import Engine
from lookalike.search.serve.forms import checked_text, item_of
from lookalike.search.serve.refusals import Refusal, no_item
from lookalike.search.serve.routes import as_json, body, check_writable, errors
from lookalike.search.serve.settings import Settings
from lookalike.search.serve.views import Thumbnails, item_form
from lookalike.search.stores import Store


def add_to(app: FastAPI, engine: Engine, settings: Settings) -> None:
    thumbnails = Thumbnails(engine.index)

    @app.post(
        "/v1/items",
        response_model=schema.ItemForm,
        status_code=201,
        responses=errors(415),
        openapi_extra=body(("multipart/form-data", schema.ITEM_FORM)),
    )
    async def add(request: Request) -> Response:
        """Add a picture, or replace the item with the same id. It is on the disk when this returns."""
        check_writable(settings)
        engine.check_free()
        item, upload = await item_of(request)
        await engine.add(item, upload, request.scope["caller"])
        return as_json(item_form(replace(item, added=time.time())), 201)

    @app.get(
        "/v1/items/{id}/thumbnail",
        response_class=Response,
        responses=errors(404) | {200: {"content": {"image/jpeg": {}}}},
    )
    async def picture(id: str) -> Response:
        """The picture of an item, small, upright, without anything else that was in the file."""
        content = await asyncio.to_thread(thumbnails.get, name_of(id))
        if content is None:
            raise Refusal(404, "The picture of this item is no longer there.")
        return Response(content, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=60"})

    @app.get("/v1/items/{id}", response_model=schema.ItemForm, responses=errors(404))
    async def show(id: str) -> Response:
        """One item. Its id is percent-encoded whole, slashes included."""
        return as_json(item_form(await asyncio.to_thread(item_named, engine.index.store, name_of(id))))

    @app.delete("/v1/items/{id}", response_model=schema.RemovedForm, responses=errors(404))
    async def remove(request: Request, id: str) -> Response:
        """Remove an item. It is gone from the disk when this returns."""
        check_writable(settings)
        name = name_of(id)
        if not await engine.remove(name, request.scope["caller"]):
            raise no_item(name)
        return as_json(schema.RemovedForm(removed=name))


def name_of(encoded: str) -> str:
    try:
        return checked_text(unquote(encoded, errors="strict"), "id")
    except UnicodeDecodeError:
        raise Refusal(404, "There is no such item: its id is not UTF-8.") from None


def item_named(store: Store, name: str) -> Item:
    items = store.items([name])
    if not items:
        raise no_item(name)
    return items[0]
