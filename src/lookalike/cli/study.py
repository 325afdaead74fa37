"""`lookalike study STUDY.toml`: a grid of runs, shared by any number of processes, ending in one table."""

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lookalike.cli.allocator import keep_memory
from lookalike.cli.arguments import Data, ResultAsJson, changes
from lookalike.cli.interrupt import stop_requests
from lookalike.cli.live import live
from lookalike.cli.running import STOPPED

if TYPE_CHECKING:
    from lookalike.sweeps import Study

MISTAKE = 2  # the exit code of a user's mistake
EXAMPLE = "lookalike study papers/multi_similarity/ablation.toml --out ablation"


def run(
    file: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="See papers/.")],
    source: Data = None,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Folder of the study.")] = Path("study"),
    recipe: Annotated[Path | None, typer.Option("--recipe", help="Use this recipe instead of the study's.")] = None,
    settings: Annotated[list[str] | None, changes("Change all cells: --set train.steps=50")] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes on this machine.")] = 1,
    table: Annotated[bool, typer.Option("--table", help="Run nothing; show what is there.")] = False,
    earlier: Annotated[
        Path | None, typer.Option("--earlier", metavar="STUDY.json", help="Its cells, done elsewhere, are not run.")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run failed cells again.")] = False,
    rehearse: Annotated[
        bool, typer.Option("--rehearse", help="Only try every row: one step, one evaluation, a few images.")
    ] = False,
    as_json: ResultAsJson = False,
) -> None:
    """Run every cell of a study that is not done yet, then show the table: mean ± deviation, intervals, differences.

    The same command continues after an interruption. Started several times (in other terminals, on other machines with
    the same folder) the processes share the work: each cell is run by one of them, cells of dead ones are taken over.
    A machine without that folder continues with --earlier from the study.json of the first one. A row that cannot run
    is named at once and the others are run; the exit code is then 2.
    """
    from lookalike.sweeps import adopt, as_text, gather, read

    study = read(file, source, recipe, settings or [])
    if rehearse:
        raise typer.Exit(_rehearse(study))
    if earlier is not None:
        adopt(study, earlier, out)
    if not table:
        helpers = [_helper() for _ in range(workers - 1)]
        try:
            study = _work(study, out, retry)
        finally:
            for helper in helpers:
                helper.wait()
    content = gather(study, out)
    if not table:
        (out / "study.json").write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False) if as_json else as_text(content))
    left = content["cells"] - content["done"] - sum(len(row["failed"]) for row in content["rows"])
    if left and not table:
        typer.echo(f"{left} cells are being run by other processes: --table shows their results", err=True)
    if study.refused:
        raise typer.Exit(MISTAKE)


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
    return MISTAKE if failed else 0


def _work(study: "Study", out: Path, retry: bool) -> "Study":
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
        with stop_requests() as stop, live() as tell:
            work(remaining(study, out), dataset, out, tell, stop, retry)
    except StoppedError as stopped:
        typer.echo(f"{stopped}; finished cells are kept. The same command continues from here.", err=True)
        raise typer.Exit(STOPPED) from None
    return study


def _helper() -> subprocess.Popen[bytes]:
    """The same command in another process, quietly."""
    words = list(sys.argv[1:])
    while "--workers" in words:
        at = words.index("--workers")
        del words[at : at + 2]
    words = [word for word in words if not word.startswith("--workers=") and word != "--retry"]
    return subprocess.Popen(
        [sys.executable, "-m", "lookalike", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
