"""`python -m papers coverage [RUN…]`: how well proxies cover their classes, from instance to instance of CCP."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from lookalike.cli.bars import bar
from lookalike.evaluation.table import aligned

EXAMPLE = "python -m papers coverage runs/ccp --out figures/"


def run(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN…]", help="Runs with [ccp]; without any, glyphs in a plane.")
    ] = None,
    instances: Annotated[int, typer.Option("--instances", min=1, help="Instances of the glyphs in a plane.")] = 4,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the glyphs in a plane.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", help="Also write coverage.svg, .png, .json here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Show covering radius and distance between classes over the instances of CCP runs, from their logs.

    Without RUN a small network embeds four glyphs in the plane: its proxies and radii are drawn instance by instance.
    """
    numbers: Any
    if folders:
        from papers.ccp.coverage import draw_coverage
        from papers.ccp.coverage import instances as of_runs

        numbers = of_runs(folders)
        draw: Any = lambda: draw_coverage(numbers)  # noqa: E731
        rows = [["run", "instance", "step", "radius", "between classes", "ratio"]]
        rows += [
            [
                name,
                f"{row['instance']}",
                f"{row['step']:,}",
                f"{row['covering_radius']:.4f}",
                f"{row['between_classes']:.4f}",
                f"{row['ratio']:.3f}",
            ]
            for name, lines in numbers.items()
            for row in lines
        ]
    else:
        from papers.ccp.coverage_glyphs import coverage_numbers, draw_glyph_coverage, snapshots

        with bar("training") as progress:
            shots = snapshots(instances, seed, progress)
        numbers = coverage_numbers(shots)
        draw = lambda: draw_glyph_coverage(shots)  # noqa: E731
        rows = [["instance", "step", "mean radius"]]
        rows += [[f"{row['instance']}", f"{row['step']}", f"{row['radius']:.4f}"] for row in numbers]
    if out is not None:
        from lookalike.analysis import save

        save(draw(), {"coverage": numbers}, out, "coverage" if folders else "coverage_glyphs")
    typer.echo(json.dumps(numbers, indent=2, ensure_ascii=False) if as_json else "\n".join(aligned(rows)))
