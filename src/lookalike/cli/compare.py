"""`lookalike compare RUN…|STUDY`: several runs side by side, and which differences are larger than the noise."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "lookalike compare runs/triplet runs/margin --out comparison --published cub200"


def run(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN…|STUDY", help="Folders of runs, or the folder of a study.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where to write the page.")] = Path("comparison"),
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", help="Compare this metric. Default: recall@1 and map@r.")
    ] = None,
    baseline: Annotated[str | None, typer.Option("--against", help="The method to compare the others with.")] = None,
    published: Annotated[
        str | None, typer.Option("--published", metavar="DATASET", help="Add published figures: cub200, sop, …")
    ] = None,
    png: Annotated[bool, typer.Option("--png", help="Also save every figure as PNG.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole comparison as JSON.")] = False,
) -> None:
    """Compare runs, or the rows of a study, with intervals.

    Shows results, paired differences, learning curves and cost. Runs that differ only in seed or fold count as one
    method. The page FOLDER/compare.html needs no other file.
    """
    from lookalike.report.charts.files import as_json as json_text
    from lookalike.report.compare import as_text, compare, write
    from lookalike.runs.finished import fitting

    with fitting(f"one of {', '.join(map(str, folders))}"):
        content = compare(folders, metrics or (), baseline, published)
        page = write(content, out, png)
    typer.echo(json_text(content.as_json()) if as_json else f"{as_text(content)}\n\npage  {page}")
