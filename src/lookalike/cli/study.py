"""`lookalike study STUDY.toml`: a grid of runs, by one process, several, or a cluster, ending in one table."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lookalike import workers as pool
from lookalike.cli.allocator import keep_memory
from lookalike.cli.arguments import Data, On, Part, ResultAsJson, Workers, changes
from lookalike.cli.interrupt import stop_requests, stopping
from lookalike.cli.live import live
from lookalike.cli.running import STOPPED
from lookalike.errors import EXIT_CODE

if TYPE_CHECKING:
    from lookalike.sweeps import Study

EXAMPLE = "lookalike study papers/multi_similarity/ablation.toml --out ablation"


def run(
    file: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="A study, such as those in papers/.")],
    source: Data = None,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="The folder of the study.")] = Path("study"),
    recipe: Annotated[Path | None, typer.Option("--recipe", help="Use this recipe instead of the study's.")] = None,
    settings: Annotated[list[str] | None, changes("Change a setting of all cells: --set train.steps=50")] = None,
    workers: Workers = 1,
    on: On = None,
    part: Part = None,
    table: Annotated[bool, typer.Option("--table", help="Run nothing; show the results so far.")] = False,
    earlier: Annotated[
        Path | None,
        typer.Option(
            "--earlier", metavar="STUDY.json", help="Skip the cells that this file has: they were run elsewhere."
        ),
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run failed cells again.")] = False,
    rehearse: Annotated[
        bool,
        typer.Option("--rehearse", help="Only check that every row can run: one step, one evaluation, a few images."),
    ] = False,
    as_json: ResultAsJson = False,
) -> None:
    """Run a grid of trainings and show the table of results.

    The table has means, standard deviations, intervals and paired differences. Cells that are done are not run again,
    so the same command continues an interrupted study. --workers shares the cells among processes, --on among the nodes
    of a Ray cluster, and --part among tasks of a batch scheduler that see the same folder. On another machine, without
    that folder, --earlier continues from the study.json of the first. A row that cannot run is reported at once, the
    other rows are run, and the exit code is 2.
    """
    from lookalike.sweeps import adopt, as_text, gather, read

    study = read(file, source, recipe, settings or [])
    if rehearse:
        raise typer.Exit(_rehearse(study))
    if earlier is not None:
        adopt(study, earlier, out)
    if not table:
        study = _work(study, out, retry, pool.Workers(workers, on), pool.Part.of(part))
    content = gather(study, out)
    if not table:
        (out / "study.json").write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False) if as_json else as_text(content))
    left = content["cells"] - content["done"] - sum(len(row["failed"]) for row in content["rows"])
    if left and not table:
        typer.echo(f"{left} cells are left to other processes or parts: --table shows their results", err=True)
    if study.refused:
        raise typer.Exit(EXIT_CODE)


def _rehearse(study: "Study") -> int:
    """One line per row; the exit code says whether every one of them can run."""
    from lookalike.sweeps import rehearse
    from lookalike.sweeps.study import load

    keep_memory()
    dataset = load(study)
    with stop_requests() as stop, live() as tell:
        outcome = rehearse(study, dataset, tell, stop)
    for row, why in outcome.items():
        typer.echo(f"row '{row}' cannot run: {why}" if why else f"row '{row}' can run")
    failed = sum(map(bool, outcome.values()))
    typer.echo(
        f"{failed} of {len(outcome)} rows cannot run" if failed else f"all {len(outcome)} rows can run", err=True
    )
    return EXIT_CODE if failed else 0


def _work(study: "Study", out: Path, retry: bool, workers: pool.Workers, part: pool.Part) -> "Study":
    """Run what is left of the rows that can run; the study without the others."""
    from lookalike.sweeps import possible, remaining, work
    from lookalike.sweeps.study import load
    from lookalike.training import StoppedError

    keep_memory()
    dataset = load(study)
    study = possible(study, dataset)
    for row, why in study.refused.items():
        typer.echo(f"row '{row}' cannot run: {why}", err=True)
    try:
        if workers.elsewhere:
            with stopping(), live() as tell:
                work(remaining(study, out), dataset, out, tell, lambda: False, retry, workers=workers, part=part)
        else:
            with stop_requests() as stop, live() as tell:
                work(remaining(study, out), dataset, out, tell, stop, retry, part=part)
    except KeyboardInterrupt:
        typer.echo("stopped; finished cells are kept. The same command continues from here.", err=True)
        raise typer.Exit(STOPPED) from None
    except StoppedError as stopped:
        typer.echo(f"{stopped}; finished cells are kept. The same command continues from here.", err=True)
        raise typer.Exit(STOPPED) from None
    return study
