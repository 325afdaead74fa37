"""`lookalike duplicates INDEX`: what is there more than once?"""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from lookalike.cli.allocator import keep_memory
from lookalike.cli.bars import bar
from lookalike.files import printable, write_text

EXAMPLE = "lookalike duplicates shop.index --page duplicates.html"
SHOWN = 20  # groups of a level in the table; JSON and the page have all


def run(
    place: Annotated[str, typer.Argument(metavar="INDEX", help="A folder or postgresql:// address.")],
    other: Annotated[
        str | None, typer.Argument(metavar="OTHER", help="A second index: find duplicates across both.")
    ] = None,
    similarity: Annotated[
        float, typer.Option("--similarity", help="How similar two items must be to count as look-alikes.")
    ] = 0.95,
    crops: Annotated[
        bool, typer.Option("--crops", help="Also find photos that are part of another photo (reads every photo again).")
    ] = False,
    page: Annotated[Path | None, typer.Option("--page", help="Also write an HTML page with the pictures.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Find copies, mirror images, crops and look-alikes.

    Each kind is listed separately.
    """
    from lookalike.search import Index
    from lookalike.search.pages import duplicates_page
    from lookalike.search.repeats import LEVELS, repeats

    keep_memory()
    index = Index.open(place)
    second = None if other is None else Index.open(other).store
    with bar("comparing") as progress, bar("looking for crops") if crops else nullcontext() as cropped:
        groups = repeats(index.store, similarity, second, progress, cropped)
    if page is not None:
        write_text(page, duplicates_page(index, groups))
    if as_json:
        typer.echo(json.dumps([_as_json(group) for group in groups], indent=2, ensure_ascii=False))
        return
    for level in LEVELS if crops else [level for level in LEVELS if level != "crop"]:
        some = [group for group in groups if group.level == level]
        typer.echo(f"{level}: {len(some):,} group{'s' * (len(some) != 1)}")
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
