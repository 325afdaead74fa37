"""`lookalike remove INDEX (ID… | --where …)`: items that shall not be found any more."""

from typing import Annotated

import typer

EXAMPLE = "lookalike remove shop.index --where brand=x"


def run(
    place: Annotated[str, typer.Argument(metavar="INDEX", help="A folder or postgresql:// address.")],
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Ids of items.")] = None,
    where: Annotated[list[str] | None, typer.Option("--where", help="A condition: brand=x, 'price<20'.")] = None,
) -> None:
    """Remove items by id, or all that conditions select. The pictures themselves are not touched."""
    from lookalike.search import Index

    index = Index.open(place)
    count = index.remove(ids or [], where)
    typer.echo(f"{count:,} items removed, {len(index):,} are left")
