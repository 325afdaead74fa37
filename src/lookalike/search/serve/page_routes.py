"""The page, its style and modules, and the description of the API; nothing comes from elsewhere."""

import json
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

from fastapi import FastAPI, Response

from lookalike.search.serve import documents
from lookalike.search.serve.refusals import Refusal

PAGE = Path(__file__).parent / "page"
PAGES = {"/": "index.html", "/watch": "watch.html"}
TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".webmanifest": "application/manifest+json",
}


def add_to(app: FastAPI, pages: Mapping[str, str] = PAGES) -> None:
    """The `pages` by their paths, and what they load."""
    for path, name in pages.items():
        add_page(app, path, name)

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        return _file(name)

    @cache
    def described() -> tuple[bytes, str]:
        content = documents.described(app)
        return json.dumps(content, ensure_ascii=False).encode(), documents.page(content)

    @app.get("/openapi.json", include_in_schema=False)
    async def description() -> Response:
        return Response(described()[0], media_type="application/json")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return Response(described()[1], media_type="text/html")

    @app.get("/docs.css", include_in_schema=False)
    async def style() -> Response:
        return Response(documents.STYLE, media_type="text/css")


def add_page(app: FastAPI, path: str, name: str) -> None:
    app.add_api_route(path, partial(_answer, name), include_in_schema=False)


async def _answer(name: str) -> Response:
    return _file(name)


def _file(name: str) -> Response:
    """A file of the page, by a name from its own list: no name leads out of the folder."""
    if name not in _files():
        raise Refusal(404, "There is nothing here. GET /docs lists what there is.")
    content, kind = _files()[name]
    return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})


@cache
def _files() -> dict[str, tuple[bytes, str]]:
    """All files of the page, read once: anybody may ask for them, as often as they like."""
    return {path.name: (path.read_bytes(), TYPES[path.suffix]) for path in PAGE.iterdir() if path.suffix in TYPES}
