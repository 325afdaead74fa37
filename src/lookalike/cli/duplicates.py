"""`lookalike duplicates INDEX`: what is there more than once?"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from lookalike.cli.allocator import keep_memory
from lookalike.cli.bars import bar
from lookalike.files import printable, write_text

EXAMPLE = "lookalike duplicates shop.index --similarity 0.97 --page duplicates.html"
SHOWN = 20  # groups of a level in the table; JSON and the page have all


def run(
    place: Annotated[str, typer.Argument(metavar="INDEX", help="A folder or postgresql:// address.")],
    other: Annotated[
        str | None, typer.Argument(metavar="[INDEX]", help="A second index: duplicates across both.")
    ] = None,
    similarity: Annotated[
        float, typer.Option("--similarity", help="Items at least this similar are look-alikes.")
    ] = 0.95,
    page: Annotated[Path | None, typer.Option("--page", help="Also write a page with the pictures.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List exact copies, copies of the same picture, mirror images and look-alikes, each kind by itself."""
    from lookalike.search import Index
    from lookalike.search.pages import duplicates_page
    from lookalike.search.repeats import LEVELS, repeats

    keep_memory()
    index = Index.open(place)
    with bar("comparing") as progress:
        groups = repeats(index.store, similarity, None if other is None else Index.open(other).store, progress)
    if page is not None:
        write_text(page, duplicates_page(index, groups))
    if as_json:
        typer.echo(json.dumps([_as_json(group) for group in groups], indent=2, ensure_ascii=False))
        return
    for level in LEVELS:
        some = [group for group in groups if group.level == level]
        typer.echo(f"{level}: {len(some):,} groups")
        for group in some[:SHOWN]:
            typer.echo(
                f"  {group.similarity:.4f}  "
                + "  =  ".join(printable(item.path or item.id) for item in group.items[:4])
            )


def _as_json(group: Any) -> dict[str, Any]:
    items = [
        {"id": item.id, "path": None if item.path is None else printable(item.path), "label": item.label}
        for item in group.items
    ]
    return {"level": group.level, "similarity": group.similarity, "items": items}
