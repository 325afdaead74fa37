"""`lookalike remove INDEX (ID… | --where …)`: items that shall not be found, or not even be known, any more."""

import json
from typing import Annotated

import typer

EXAMPLE = "lookalike remove shop.index --where brand=x"


def run(
    place: Annotated[str, typer.Argument(metavar="INDEX", help="A folder or postgresql:// address.")],
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Ids of items.")] = None,
    where: Annotated[list[str] | None, typer.Option("--where", help="A condition: brand=x, 'price<20'.")] = None,
    forget: Annotated[
        bool, typer.Option("--forget", help="Leave no byte of them in any file of the index, and print a receipt.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
) -> None:
    """Remove items by id, or all that conditions select. The pictures themselves are not touched.

    What is removed stays in free pages, logs and caches until something else is written there. With --forget the
    index is written anew, which takes as long as copying it, and marks that speak of the items go with them.
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
