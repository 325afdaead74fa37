"""`lookalike classify INDEX IMAGES… --out table.csv`: labels for pictures, from what they look like."""

import csv
from pathlib import Path
from typing import Annotated, Any

import typer

from lookalike.cli.allocator import keep_memory
from lookalike.cli.bars import bar

EXAMPLE = "lookalike classify shop.index new_photos/ --out labels.csv"


def run(
    place: Annotated[
        str, typer.Argument(metavar="INDEX", help="A folder or postgresql:// address whose items have labels.")
    ],
    sources: Annotated[list[str], typer.Argument(metavar="IMAGES", help="Folders, images, globs or tables.")],
    out: Annotated[
        Path, typer.Option("--out", help="The .csv table to write: path, label, second, chance, similarity, verdict.")
    ],
    sure_only: Annotated[bool, typer.Option("--sure", help="Write only rows whose verdict is sure.")] = False,
    guess: Annotated[bool, typer.Option("--guess", help="Write a label even if the verdict is unknown.")] = False,
) -> None:
    """Label photos by the most similar items of an index.

    The table also has the second-best label; photos that look like nothing in the index get none. `lookalike fit` reads
    the table: it learns the labels that are sure, and leaves out the others until you have checked them.
    """
    from lookalike import files
    from lookalike.search import Index

    keep_memory()
    index = Index.open(place)
    with bar("classifying") as progress:
        rows = [row for source in sources for row in index.classify(source, progress=progress)]
    read = [row for row in rows if not row.problem]
    kept = [row for row in read if not sure_only or row.verdict == "sure"]
    with files.whole_file(out, "w") as file:
        table = csv.writer(file)
        table.writerow(["path", "label", "second", "chance", "similarity", "verdict"])
        table.writerows(_cells(row, guess) for row in kept)
    for row in rows:
        if row.problem:
            typer.echo(f"unreadable: {files.printable(row.path)}: {row.problem}", err=True)
    counts = [
        f"{sum(row.verdict == verdict for row in read):,} {verdict}"
        for verdict in dict.fromkeys(row.verdict for row in read)
    ]
    lost = len(rows) - len(read)
    counts += [f"{lost:,} unreadable, not in it"] if lost else []
    typer.echo(f"{len(kept):,} of {len(rows):,} pictures in {out} ({', '.join(counts)})")


def _cells(row: Any, guess: bool) -> list[str]:
    from lookalike.data.formats.table import guarded
    from lookalike.files import printable

    label, second = (row.label, row.second) if guess or row.verdict != "unknown" else (None, None)
    names = [guarded(printable(row.path)), guarded(label or ""), guarded(second or "")]
    return [*names, "" if row.chance is None else f"{row.chance:.4f}", f"{row.similarity:.6f}", row.verdict]
