"""`lookalike serve INDEX`: a page and an API for people and programs."""

import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lookalike.errors import UserError, check, install

EXAMPLE = "lookalike serve shop.index --port 8000"
DEMO = Path("demo")


def run(
    place: Annotated[
        str | None,
        typer.Argument(metavar="INDEX", help="A folder or postgresql:// address. Default: the index of the demo."),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port to listen on; 0: any free one.")
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="LOOKALIKE_TOKEN",
            help="A key with all rights. To listen to other machines, set this or add keys to the index.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option("--name", help="A host name that clients use for this server.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, max=64, help="Number of processes that answer.")] = 1,
    read_only: Annotated[bool, typer.Option("--read-only", help="Allow no new items, removals or feedback.")] = False,
    log: Annotated[bool, typer.Option("--log/--no-log", help="Log a line of JSON on stderr for every request.")] = True,
) -> None:
    """Serve a search page and an HTTP API.

    The page is at /, the documentation of the API at /docs. Ctrl-C stops the server.
    """
    from lookalike.search.serve.settings import LOCAL, Settings

    check_token(token)
    check_libraries()
    from lookalike.discover.kept import is_begun
    from lookalike.discover.review.routes import add_begun
    from lookalike.search import Index, keys
    from lookalike.search.serve.app import create_app
    from lookalike.search.serve.server import run as serve
    from lookalike.search.stores.places import review_folder, shown

    chosen = place or _demo()
    with closing(Index.open(chosen)) as index:
        check(
            host in LOCAL or bool(token) or any(key.valid(time.time()) for key in keys.every(index.store.log)),
            f"listening on {host} lets others in: give a --token that they must send, or keys (lookalike keys)",
        )
    settings = Settings(chosen, host, port, token, tuple(name or ()), read_only, workers, log=log)

    def announce(address: str) -> None:
        typer.echo(f"serving {shown(chosen)} at {address}, Ctrl-C stops it", err=True)
        if is_begun(review_folder(chosen)):
            typer.echo(f"groups to name and mend at {address}/review", err=True)

    serve(settings, announce, partial(create_app, further=(add_begun,)))


def check_token(token: str | None) -> None:
    plain = token is None or (token.isascii() and token == token.strip() != "")
    check(plain, "a token is plain ASCII without blanks around it")


def check_libraries() -> None:
    from importlib.util import find_spec

    missing = [library for library in ("fastapi", "uvicorn", "python_multipart") if find_spec(library) is None]
    if missing:
        raise UserError(f"serving needs {', '.join(missing)}: {install('serve')}")


def _demo() -> str:
    """The index of the demo, made where there is none yet."""
    from lookalike.cli import fit, index
    from lookalike.runs import RunFolder
    from lookalike.search import Index

    place, demo = DEMO / "unseen.index", RunFolder(DEMO)
    if not Index.exists(place):
        if not demo.finished:  # a run has a model before it is finished
            typer.echo(f"there is no demo in '{DEMO}' yet: training one takes some minutes", err=True)
            fit.run(out=DEMO, resume=demo.begun)
        index.run(str(demo.model), [str(DEMO)], out=str(place))
    return str(place)
