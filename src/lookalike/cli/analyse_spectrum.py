"""`lookalike analyse spectrum RUN…|STUDY`: the shape of the space over runs, and how it correlates with recall."""

import json
from pathlib import Path
from typing import Annotated

import typer

from lookalike.evaluation.table import aligned

EXAMPLE = "lookalike analyse spectrum runs/* --out figures/"


def run(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN…|STUDY", help="Folders of runs, or of a study.")],
    out: Annotated[Path | None, typer.Option("--out", help="Also write spectrum.svg, .png, .json here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Compare the spectra of runs with their recall@1.

    Shows rho, intra and inter of every run and how they correlate with recall@1: on train images, as in the paper, if
    all runs measured those (evaluation.train), otherwise on test images.
    """
    from lookalike.analysis import save
    from lookalike.analysis.spectra import MEASURES, draw_spectra, shapes, spectrum_numbers

    runs = shapes(folders)
    numbers = spectrum_numbers(runs)
    if out is not None:
        save(draw_spectra(runs), numbers, out, "spectrum")
    if as_json:
        typer.echo(json.dumps(numbers, indent=2, ensure_ascii=False))
        return
    rows = [[f"on {runs[0].on} images", "recall@1", *MEASURES]]
    for shape in runs:
        cells = [f"{shape.measures[name]:.4f}" if name in shape.measures else "" for name in MEASURES]
        rows.append([shape.name, f"{100 * shape.recall:.2f}", *cells])
    related = numbers["correlation with recall@1"]
    rows.append(["Pearson's r with recall@1", "", *(_signed(related.get(name)) for name in MEASURES)])
    typer.echo("\n".join(aligned(rows)))
    if not related:
        typer.echo("a correlation needs at least three runs", err=True)


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.2f}"
