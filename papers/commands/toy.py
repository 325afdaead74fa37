"""`python -m papers toy`: four segments of a plane, and what a loss forgets about them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from lookalike.analysis import save
from lookalike.cli.bars import bar
from lookalike.errors import unknown
from papers.roth.toy import LAYOUTS, run_toy
from papers.roth.toy_picture import draw_toy, toy_numbers

EXAMPLE = "python -m papers toy --layout diagonal --seeds 10 --out figures/"


def run(
    layout: Annotated[str, typer.Option("--layout", help=f"{' or '.join(LAYOUTS)}; both without it.")] = "",
    seeds: Annotated[int, typer.Option("--seeds", help="Networks per variant.")] = 10,
    out: Annotated[Path | None, typer.Option("--out", help="Also write toy_LAYOUT.svg, .png, .json here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Train the 2-D toy of Revisiting Training Strategies: does the switch or the missing attraction keep a direction?

    The number is the second singular value of the embedding as a share of both: 0 is a line, 0.5 is round.
    """
    if layout and layout not in LAYOUTS:
        raise unknown("layout", layout, LAYOUTS)
    document: dict[str, Any] = {}
    for name in [layout] if layout else LAYOUTS:
        with bar(f"training, {name}") as progress:
            runs = run_toy(name, seeds, progress)  # type: ignore[arg-type]
        document[name] = toy_numbers(runs)
        if out is not None:
            save(draw_toy(runs, name), document[name], out, f"toy_{name}")  # type: ignore[arg-type]
    typer.echo(json.dumps(document, indent=2) if as_json else "\n\n".join(map(as_table, document, document.values())))


def as_table(layout: str, numbers: Mapping[str, Mapping[str, Any]]) -> str:
    width = max(map(len, numbers))
    columns = list(next(iter(numbers.values())))
    seeds = len(next(iter(numbers.values()))["train"]["seeds"])
    lines = [f"{layout}: second singular value (share), mean ± standard deviation over {seeds} seeds"]
    lines.append(f"{'':<{width}}  " + "  ".join(f"{column:>13}" for column in columns))
    for name, row in numbers.items():
        cells = (f"{row[column]['mean']:.3f} ± {row[column]['std']:.3f}" for column in columns)
        lines.append(f"{name:<{width}}  " + "  ".join(cells))
    return "\n".join(lines)
