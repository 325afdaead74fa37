"""`lookalike remove INDEX (ID… | --where …)`: items that should no longer be found, or even known."""

import json
from typing import Annotated

import typer

EXAMPLE = "lookalike remove shop.index --where brand=x"


def run(
    place: Annotated[str, typer.Argument(metavar="INDEX", help="A folder or postgresql:// address.")],
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Ids of items.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", help="Remove all items that meet this condition: brand=x, 'price<20'."),
    ] = None,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget", help="Erase every byte of the items from the files of the index, and print a receipt."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
) -> None:
    """Remove items from an index.

    Removes items by id, or all that meet a condition; the image files are not touched. Bytes of removed items may
    remain in the files of the index until they are overwritten. With --forget the whole index is rewritten, which takes
    as long as copying it, and marks about the items are removed too.
    """
    from lookalike.search import Index

    index = Index.open(place)
    if forget:
        receipt = index.forget(ids or [], where)
        content, lines = receipt.as_json(), receipt.lines()
    else:
        count, left = index.remove(ids or [], where), len(index)
        content, lines = {"removed": count, "left": left}, [f"{count:,} items removed, {left:,} are left"]
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False) if as_json else "\n".join(lines))
