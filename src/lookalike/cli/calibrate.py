"""`lookalike calibrate INDEX DATA`: what does a similarity mean?"""

import json
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lookalike.cli.allocator import keep_memory
from lookalike.cli.bars import bar

EXAMPLE = "lookalike calibrate shop.index held_out/ --precision 0.95"


def run(
    place: Annotated[str, typer.Argument(metavar="INDEX", help="A folder or postgresql:// address.")],
    source: Annotated[str, typer.Argument(metavar="DATA", help="Labelled images of classes not used in training.")],
    precision: Annotated[
        float, typer.Option("--precision", help="The share of sure answers that must be right.")
    ] = 0.95,
    page: Annotated[Path | None, typer.Option("--page", help="Also write a page with the curve.")] = None,
    off: Annotated[bool, typer.Option("--off", help="Compare, but switch nothing on.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
) -> None:
    """Query an index with labelled images, with their class in it and without, and save the thresholds.

    Also compares query expansion, re-ranking, flip and voting on the same images, and switches on what gains.
    """
    from lookalike import files
    from lookalike.evaluation.table import aligned
    from lookalike.search import Index
    from lookalike.search.pages import calibration_page, sentences

    keep_memory()
    index = Index.open(place)
    with ExitStack() as shown:
        result = index.calibrate(source, precision, stage=lambda name: shown.enter_context(bar(name)), plain=off)
    if page is not None:
        files.write_text(page, calibration_page(index, result))
    if as_json:
        typer.echo(json.dumps({"calibration": result.calibration.as_json(), "quality": result.quality.as_json(),
                               "compared": [asdict(row) for row in result.compared]}, indent=2))  # fmt: skip
        return
    rows = [["", "recall@1", "map@r", "difference", "95 % interval", ""]]
    for row in result.compared:
        figures = (f"{row.recall:.3f}", f"{row.map_at_r:.3f}", f"{row.difference:+.3f}")
        interval = f"[{row.interval[0]:+.3f}, {row.interval[1]:+.3f}]"
        rows.append([row.name, *figures, interval, "kept" if row.kept else ""])
    typer.echo("\n".join([*aligned(rows), "", *sentences(result)]))
