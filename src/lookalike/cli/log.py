"""`lookalike log INDEX`: who did what."""

import json
from typing import Annotated

import typer

EXAMPLE = "lookalike log shop.index --last 20"


def run(
    place: Annotated[str, typer.Argument(metavar="INDEX", help="A folder or postgresql:// address.")],
    item: Annotated[str | None, typer.Option("--item", metavar="ID", help="Show only changes to this item.")] = None,
    last: Annotated[
        int | None, typer.Option("--last", min=1, help="Show only this many of the newest entries.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")] = False,
) -> None:
    """Show who changed what in an index.

    Lists additions, removals, marks, calibrations and changes of keys, oldest first. Entries are never changed. An item
    is named by a digest of its id, so that nothing reveals the name of one that was erased.
    """
    from lookalike.search import Index
    from lookalike.search.log import shown, subject_of

    entries = Index.open(place).store.log.entries((), None if item is None else subject_of(item), last)
    if as_json:
        typer.echo(json.dumps([shown(entry) for entry in entries], indent=2, ensure_ascii=False))
        return
    for entry in map(shown, entries):
        typer.echo(
            "  ".join(str(entry[part]) for part in ("time", "who", "action", "subject", "detail") if entry[part])
        )
