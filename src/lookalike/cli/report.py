"""`lookalike report RUN`: write the page of a run again from its folder."""

import json
from pathlib import Path
from typing import Annotated

import typer

from lookalike.cli.bars import bar

EXAMPLE = "lookalike report run"


def run(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, with test.npz in it.")],
    png: Annotated[bool, typer.Option("--png", help="Also save every figure as PNG.")] = False,
    photos: Annotated[
        Path | None, typer.Option("--photos", help="Also show test images that are inside this folder.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the path of the page and the main figures as JSON.")
    ] = False,
) -> None:
    """Write the report of a run as one HTML page.

    The page is RUN/report.html and needs no other file; its figures and their numbers are also saved in RUN/figures/.
    """
    from lookalike import report
    from lookalike.runs.finished import fitting

    with fitting(str(folder)):
        with bar("writing the report") as progress:
            page = report.write(folder, progress=progress, png=png, photos=photos)
        results = json.loads((folder / "figures" / "results.json").read_text(encoding="utf-8"))["results"]
        if as_json:
            typer.echo(json.dumps({"page": str(page), "results": results}, indent=2, ensure_ascii=False))
            return
        typer.echo(f"{page}")
        for row in results:
            numbers = "  ".join(
                f"{name} {row['metrics'][name]:.3f}" for name in row["metrics"] if name in ("recall@1", "map@r")
            )
            typer.echo(f"  {row['name']:<24} {numbers}")
