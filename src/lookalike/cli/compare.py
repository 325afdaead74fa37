"""`lookalike compare RUN…|STUDY`: several runs side by side, and which differences are larger than the noise."""

import json
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "lookalike compare runs/triplet runs/margin --out comparison --published cub200"


def run(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN…|STUDY", help="Folders of runs, or of a study.")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where the page goes.")] = Path("comparison"),
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", help="To compare by; default: recall@1 and map@r.")
    ] = None,
    baseline: Annotated[str | None, typer.Option("--against", help="The method the others are compared with.")] = None,
    published: Annotated[
        str | None, typer.Option("--published", metavar="DATASET", help="Published figures beside: cub200, sop, …")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole comparison as JSON.")] = False,
) -> None:
    """Compare runs, or the rows of a study: figures with intervals, differences in pairs, learning curves, cost.

    Runs that differ only in seed or fold are one method. FOLDER/compare.html is one page that opens anywhere.
    """
    from lookalike.report.compare import as_text, compare, write
    from lookalike.report.run.export import finite

    content = compare(folders, metrics or (), baseline, published)
    page = write(content, out)
    if as_json:
        typer.echo(json.dumps(finite(content.as_json()), indent=2, ensure_ascii=False, default=str))
        return
    typer.echo(f"{as_text(content)}\n\npage  {page}")
