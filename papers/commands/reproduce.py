"""`python -m papers reproduce`: run what is left of the studies, then draw docs/reproduction.md."""

from pathlib import Path
from typing import Annotated

import typer

from lookalike.errors import check

EXAMPLE = "python -m papers reproduce --cub200 birds/ --workers 2"


def run(
    cub200: Annotated[str | None, typer.Option("--cub200", metavar="FOLDER", help="CUB_200_2011, unpacked.")] = None,
    cars196: Annotated[
        str | None, typer.Option("--cars196", metavar="FOLDER", help="Cars196, unpacked, or a table cars196.csv.")
    ] = None,
    omniglot: Annotated[
        str | None,
        typer.Option("--omniglot", metavar="FOLDER", help="images_background and images_evaluation, unpacked."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="The folder of the studies.")] = Path("runs"),
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes.")] = 2,
    estimate: Annotated[bool, typer.Option("--estimate", help="Only say how long it will take.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Run nothing: gather what OUT has, and draw the page.")] = False,
) -> None:
    """Run every study whose data are given, one after the other, and keep the results for the page.

    Finished cells are never run again: stop it at any time, and start it again to go on.
    """
    from papers.reproduction import run as running
    from papers.reproduction.planned import STUDIES

    given = {"cub200": cub200, "cars196": cars196, "omniglot": omniglot}
    data = {name: place for name, place in given.items() if place is not None}
    check(bool(data), "no photos were given: add --cub200 FOLDER, --cars196 FOLDER or --omniglot FOLDER")
    for line in running.estimate(data, out, workers):
        typer.echo(line, err=True)
    if estimate:
        return
    if not keep:
        raise typer.Exit(running.run(data, out, workers))
    for study in STUDIES:
        if study.data in data:
            running.keep(study, data, out)
    running.keep_search(out)
