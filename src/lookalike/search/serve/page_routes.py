"""The page, its style and modules, and the description of the API; nothing comes from elsewhere."""

from pathlib import Path

from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse

from lookalike.search.serve import documents
from lookalike.search.serve.refusals import Refusal

PAGE = Path(__file__).parent / "page"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml",
         ".png": "image/png", ".ico": "image/x-icon", ".webmanifest": "application/manifest+json"}  # fmt: skip


def add_to(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return _file("index.html")

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        return _file(name)

    @app.get("/openapi.json", include_in_schema=False)
    async def description() -> Response:
        return JSONResponse(documents.described(app))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return Response(documents.page(documents.described(app)), media_type="text/html")

    @app.get("/docs.css", include_in_schema=False)
    async def style() -> Response:
        return Response(documents.STYLE, media_type="text/css")


def _file(name: str) -> Response:
    """A file of the page, by a name from its own list: no name leads out of the folder."""
    known = {path.name: path for path in PAGE.iterdir() if path.suffix in TYPES}
    if name not in known:
        raise Refusal(404, "There is nothing here. GET /docs lists what there is.")
    path = known[name]
    return Response(path.read_bytes(), media_type=TYPES[path.suffix], headers={"Cache-Control": "no-cache"})
