"""`lookalike labels INDEX --out table.csv`: what people have marked, as labels."""

import json
from pathlib import Path
from typing import Annotated

import typer

from lookalike.errors import check

EXAMPLE = "lookalike labels shop.index --out marked.csv"


def run(
    place: Annotated[str, typer.Argument(metavar="INDEX", help="A folder or postgresql:// address.")],
    out: Annotated[Path, typer.Option("--out", help="The .csv table to write: path, label, not_label.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
) -> None:
    """Write what people marked as right or wrong to a table.

    `fit --with` and `calibrate` read the table. The single marks go to NAME.pairs.csv beside it, and query photos that
    are not files of yours to NAME.pictures/.
    """
    from lookalike.search import Index
    from lookalike.search.feedback import labels

    check(out.suffix.lower() == ".csv", f"'{out}' does not end in .csv: fit and calibrate read the table by that name")
    index = Index.open(place)
    result = labels(index.store, out.with_suffix(".pictures"))
    check(bool(result.pairs), f"there is no feedback in '{index.shown}': mark hits as right or wrong on the page first")
    pairs = result.write(out)
    if as_json:
        counts = {"images": len(result.rows), "classes": result.classes, "denied": len(result.denied)}
        counts |= {"pairs": len(result.pairs), "contradicted": len(result.contradicted), "lost": result.lost}
        typer.echo(json.dumps(counts | {"table": str(out), "pairs_table": str(pairs)}, indent=2))
        return
    typer.echo(f"{len(result.rows):,} images of {result.classes:,} classes in {out}")
    if result.denied:
        typer.echo(f"{len(result.denied):,} more with only ruled-out labels, in its column not_label")
    typer.echo(f"{len(result.pairs):,} pairs in {pairs}")
    for conflict in result.contradicted:
        typer.echo(f"left out, contradicted: {conflict}", err=True)
    if result.lost:
        typer.echo(f"{result.lost:,} marks are left out: the picture of their query or item is gone", err=True)
