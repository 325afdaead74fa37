"""`lookalike calibrate INDEX [DATA]`: when can answers be believed?"""

import json
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lookalike.cli.allocator import keep_memory
from lookalike.cli.bars import bar

EXAMPLE = "lookalike calibrate shop.index"


def run(
    place: Annotated[str, typer.Argument(metavar="INDEX", help="A folder or postgresql:// address.")],
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA", help="More labelled images of the same classes. Default: the items of the index."
        ),
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            "--precision", help="Share of `sure` answers that must be right. Default: the highest useful one."
        ),
    ] = None,
    page: Annotated[Path | None, typer.Option("--page", help="Also write an HTML page with the curve.")] = None,
    off: Annotated[bool, typer.Option("--off", help="Switch nothing on: measure chances of plain searches.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
) -> None:
    """Measure how often answers of an index are right.

    Searches for images whose class is known, while that class is missing from the index or has one photo, three, or
    all; `lookalike search` then says how likely an answer is to be right. Without DATA these are the items of the index
    itself, which says nothing about photos that were taken in another way. With DATA, averaging each query with its
    mirror image is tried too, and switched on if it helps classes of every size. In an index of things, ranking them by
    their best two photos instead of the best one is tried with and without DATA, and switched on if the right thing
    comes first more often, and for no number of photos less often.
    """
    from lookalike import files
    from lookalike.evaluation.table import aligned
    from lookalike.search import Index
    from lookalike.search.pages import calibration_page, sentences, ways

    keep_memory()
    index = Index.open(place)
    with ExitStack() as shown:
        result = index.calibrate(source, precision, stage=lambda name: shown.enter_context(bar(name)), plain=off)
    if page is not None:
        files.write_text(page, calibration_page(index, result))
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "calibration": result.calibration.as_json(),
                    "quality": result.quality.as_json(),
                    "compared": [asdict(row) for row in result.compared],
                },
                indent=2,
            )
        )
        return
    table = [*aligned(ways(result)), ""] if result.compared else []
    typer.echo("\n".join([*table, *sentences(result)]))
