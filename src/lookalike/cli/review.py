"""`lookalike review photos/`: a page on which a person names and mends groups of photos."""

from pathlib import Path
from typing import Annotated

import typer

from lookalike.cli.grouping import KNOWN, open_review
from lookalike.errors import check

EXAMPLE = "lookalike review photos/"


def run(
    source: Annotated[
        str, typer.Argument(metavar="PHOTOS|INDEX", help="Photos (the folders they are in are ignored) or an index.")
    ],
    model: Annotated[
        Path | None, typer.Option("--model", help="Find the groups again with this model; your names and answers stay.")
    ] = None,
    known: Annotated[Path | None, typer.Option("--known", metavar="TABLE", help=KNOWN)] = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes any free port.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="LOOKALIKE_TOKEN", help="A key; other machines cannot connect without it."),
    ] = None,
) -> None:
    """Open a page to name and correct groups of photos.

    Groups are found in photos without labels; on the page you name, merge and split them and take photos out. Every
    change is first saved in NAME.review, beside the photos, and labels.csv in that folder is the table for `fit`.
    `lookalike ask` uses the same folder. In an index, your changes are also kept as marks.
    """
    from lookalike.cli.serve import check_libraries, check_token
    from lookalike.search.serve.settings import LOCAL, Settings

    check_token(token)
    check(host in LOCAL or bool(token), f"listening on {host} lets others in: give a --token that they must send")
    check_libraries()
    place = open_review(source, model, known)
    from lookalike.discover.kept import LABELS
    from lookalike.discover.review.routes import create_app
    from lookalike.search.serve.server import run as serve

    def announce(address: str) -> None:
        typer.echo(f"review {source} at {address}, Ctrl-C stops it", err=True)
        typer.echo(f"The table for lookalike fit: {place / LABELS}", err=True)

    serve(Settings(source, host, port, token, log=False), announce, create_app)
