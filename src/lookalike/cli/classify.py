"""`lookalike classify INDEX IMAGES… --out table.csv`: labels for pictures, from what they look like."""

import csv
from pathlib import Path
from typing import Annotated

import typer

from lookalike.cli.allocator import keep_memory
from lookalike.cli.bars import bar

EXAMPLE = "lookalike classify shop.index new_photos/ --out labels.csv"


def run(
    place: Annotated[str, typer.Argument(metavar="INDEX", help="A folder or postgresql:// address with labels.")],
    sources: Annotated[list[str], typer.Argument(metavar="IMAGES...", help="Folders, images, globs or tables.")],
    out: Annotated[Path, typer.Option("--out", help="The .csv table to write: path, label, similarity, verdict.")],
    sure_only: Annotated[bool, typer.Option("--sure", help="Only rows whose verdict is sure.")] = False,
) -> None:
    """Give every picture the label of what it looks like most; `lookalike fit` reads the table again."""
    from lookalike import files
    from lookalike.data.formats.table import guarded
    from lookalike.search import Index

    keep_memory()
    index = Index.open(place)
    with bar("classifying") as progress:
        rows = [row for source in sources for row in index.classify(source, progress=progress)]
    kept = [row for row in rows if row.label is not None and (not sure_only or row.verdict == "sure")]
    with files.whole_file(out, "w") as file:
        table = csv.writer(file)
        table.writerow(["path", "label", "similarity", "verdict"])
        for row in kept:
            cells = guarded(files.printable(row.path)), guarded(row.label or "")
            table.writerow([*cells, f"{row.similarity:.6f}", row.verdict])
    counts = ", ".join(
        f"{sum(row.verdict == verdict for row in rows):,} {verdict}"
        for verdict in dict.fromkeys(row.verdict for row in rows)
    )
    typer.echo(f"{len(kept):,} of {len(rows):,} pictures in {out} ({counts})")
