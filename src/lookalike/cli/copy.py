"""`lookalike copy INDEX INDEX`: an index to another place."""

import json
from contextlib import ExitStack
from dataclasses import asdict
from typing import Annotated

import typer

from lookalike.cli.bars import bar
from lookalike.errors import UserError, check

EXAMPLE = "lookalike copy shop.index 'postgresql://me@server/shop'"


def run(
    source: Annotated[
        str, typer.Argument(metavar="INDEX", help="The index to copy: a folder or postgresql:// address.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="A new index, or a copy to finish or bring up to date.")
    ],
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the items of a TARGET that is not a copy of INDEX.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a sentence.")] = False,
) -> None:
    """Copy an index to another folder or PostgreSQL server.

    Shards work too. The same command continues an interrupted copy. At the end, the items of both sides are counted and
    their digests compared.
    """
    from lookalike.search.stores import places
    from lookalike.search.stores.copying import copy

    check(places.shown(source) != places.shown(target), "both are the same index: give another place for the copy")
    begin = places.opened(source)
    end = places.opened(target) if places.exists(target) else places.created(target, begin.identity)
    try:
        with ExitStack() as shown:
            result = copy(begin, end, lambda name: shown.enter_context(bar(name)), replace)
    except KeyboardInterrupt:
        raise UserError("stopped; what is copied stays, the same command continues") from None
    finally:
        begin.close()
        end.close()
    if as_json:
        typer.echo(json.dumps(asdict(result)))
        return
    typer.echo(
        f"{result.items:,} items in {places.shown(target)}, equal to those in {places.shown(source)} "
        f"(digest {result.digest})"
    )
