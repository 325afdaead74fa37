"""`lookalike serve INDEX`: a page and an API for people and programs."""

import time
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from lookalike.errors import UserError, check, install

EXAMPLE = "lookalike serve shop.index --port 8000"
DEMO = Path("demo")


def run(
    place: Annotated[
        str | None, typer.Argument(metavar="[INDEX]", help="A folder or postgresql:// address. Default: the demo's.")
    ] = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes any free port.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar="LOOKALIKE_TOKEN",
            help="A key that may do everything; other machines need it, or keys of the index.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option("--name", help="A host name under which the server is reached.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, max=64, help="Processes that answer.")] = 1,
    read_only: Annotated[bool, typer.Option("--read-only", help="No new items, no removals, no feedback.")] = False,
    log: Annotated[bool, typer.Option("--log/--no-log", help="A line of JSON on stderr for every request.")] = True,
) -> None:
    """Serve an index as a page to search with and an API (docs at /docs), until Ctrl-C."""
    from lookalike.search.serve.settings import LOCAL, Settings

    plain = token is None or (token.isascii() and token == token.strip() != "")
    check(plain, "a token is plain ASCII without blanks around it")
    _check_libraries()
    from lookalike.search import Index, keys
    from lookalike.search.serve.server import run as serve
    from lookalike.search.stores.places import shown

    chosen = place or _demo()
    with closing(Index.open(chosen)) as index:
        check(
            host in LOCAL or bool(token) or any(key.valid(time.time()) for key in keys.every(index.store.log)),
            f"listening on {host} lets others in: give a --token that they must send, or keys (lookalike keys)",
        )
    settings = Settings(chosen, host, port, token, tuple(name or ()), read_only, workers, log=log)
    serve(settings, lambda address: typer.echo(f"serving {shown(chosen)} at {address}, Ctrl-C stops it", err=True))


def _check_libraries() -> None:
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
