"""`lookalike labels INDEX --out table.csv`: what people have marked, as labels."""

import csv
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from lookalike.errors import check

EXAMPLE = "lookalike labels shop.index --out marked.csv"


def run(
    place: Annotated[str, typer.Argument(metavar="INDEX", help="A folder or postgresql:// address with feedback.")],
    out: Annotated[Path, typer.Option("--out", help="The .csv table to write: path, label.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
) -> None:
    """Write marked queries and items with their classes (for fit and calibrate), and all pairs, right and wrong.

    The pairs go beside the table as NAME.pairs.csv; pictures that are not files of yours go to NAME.pictures/.
    """
    from lookalike import files
    from lookalike.search import Index
    from lookalike.search.feedback import labels

    check(out.suffix.lower() == ".csv", f"'{out}' does not end in .csv: fit and calibrate read the table by that name")
    index = Index.open(place)
    pairs_file = out.with_suffix(".pairs.csv")
    result = labels(index.store, out.with_suffix(".pictures"))
    check(bool(result.pairs), f"there is no feedback in '{index.shown}': mark hits as right or wrong on the page first")
    _write(files, out, ["path", "label"], result.rows)
    _write(files, pairs_file, ["query", "item", "right"],
           [(pair.query, pair.item, "yes" if pair.right else "no") for pair in result.pairs])  # fmt: skip
    classes = len({label for _, label in result.rows})
    content = {"images": len(result.rows), "classes": classes, "pairs": len(result.pairs),
               "contradicted": result.contradicted, "lost": result.lost}  # fmt: skip
    if as_json:
        typer.echo(json.dumps(content | {"table": str(out), "pairs_table": str(pairs_file)}, indent=2))
        return
    typer.echo(f"{len(result.rows):,} images of {classes:,} classes in {out}")
    typer.echo(f"{len(result.pairs):,} pairs in {pairs_file}")
    for number, what in (
        (result.contradicted, "queries are left out of the table: their marks contradict labels or each other"),
        (result.lost, "marks are left out: the picture of their query or item is gone"),
    ):
        if number:
            typer.echo(f"{number:,} {what}", err=True)


def _write(files: Any, place: Path, header: list[str], rows: Any) -> None:
    from lookalike.data.formats.table import guarded

    with files.whole_file(place, "w") as file:
        table = csv.writer(file)
        table.writerow(header)
        table.writerows([guarded(files.printable(str(cell))) for cell in row] for row in rows)
