"""`lookalike tune RECIPE.toml`: a search for the best settings, on validation classes only."""

import json
from pathlib import Path
from typing import Annotated

import typer

from lookalike.cli.allocator import keep_memory
from lookalike.cli.arguments import Data, changes
from lookalike.cli.interrupt import stop_requests
from lookalike.cli.live import live
from lookalike.cli.running import STOPPED

EXAMPLE = "lookalike tune search.toml photos/ --trials 40 --out tuning"


def run(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE.toml", help="A recipe with a [tune] table.")],
    source: Data = None,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="The folder of the search.")] = Path("tuning"),
    trials: Annotated[int, typer.Option("--trials", help="Number of trials, over all workers.")] = 30,
    settings: Annotated[list[str] | None, changes("Change a setting of all trials: --set train.steps=200")] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            "--storage", envvar="LOOKALIKE_STORAGE", metavar="URL", help="A database that several machines share."
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="The name of the search in that database. Default: RECIPE.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Random seed of the search (not of the trainings).")] = 0,
    heartbeat: Annotated[
        int,
        typer.Option(
            "--heartbeat",
            min=1,
            help="Seconds between heartbeats. A trial that misses three counts as dead.",
        ),
    ] = 30,
    as_json: Annotated[bool, typer.Option("--json", help="Print all trials as JSON.")] = False,
) -> None:
    """Search for the best settings of a recipe.

    The [tune] table of the recipe gives the ranges; the score is map@r on validation folds of the train classes, and
    the test images stay unseen. The same command continues an interrupted search, and with --storage any number of
    machines can share one. The result is FOLDER/best.toml, for `lookalike train`, and FOLDER/tune.html.
    """
    from lookalike.sweeps import Search, search, write
    from lookalike.training import StoppedError

    keep_memory()
    task = Search.read(recipe, out, source, settings or [], storage, name=name, seed=seed, heartbeat=heartbeat)
    try:
        with stop_requests() as stop, live() as tell:
            result = search(task, trials, tell, stop)
    except StoppedError as stopped:
        typer.echo(f"{stopped}; the trial is kept. The same command continues from here.", err=True)
        raise typer.Exit(STOPPED) from None
    page = write(result, task.ranges, out)
    if as_json:
        typer.echo(json.dumps({"best": result.best, "trials": result.trials}, indent=2, ensure_ascii=False))
        return
    values = ", ".join(f"{key} = {value}" for key, value in result.best["params"].items())
    typer.echo(f"validation map@r {result.best['value']:.4f} in trial {result.best['number']}: {values}\n")
    typer.echo(f"recipe  {out / 'best.toml'}\npage    {page}")
