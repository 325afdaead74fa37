"""Arguments that several verbs have: the same name, meaning and help wherever they stand."""

from pathlib import Path
from typing import Annotated, Any

import typer

Data = Annotated[str | None, typer.Argument(metavar="DATA", help="A folder, a table, a data set, or dataset=folder.")]
RunFolder = Annotated[Path, typer.Option("--out", metavar="RUN", help="The folder of the run.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in RUN.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Replace the run in RUN.")]
Audit = Annotated[bool, typer.Option("--audit/--no-audit", help="Check every image before training.")]
TensorBoard = Annotated[bool, typer.Option("--tensorboard", help="Also log to RUN/tensorboard.")]
Track = Annotated[str | None, typer.Option("--track", help="Also log to wandb or trackio.")]
ResultAsJson = Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")]

On = Annotated[
    str | None, typer.Option("--on", metavar="ADDRESS", help="Do the work on a Ray cluster: ray://HOST:10001.")
]
Workers = Annotated[int, typer.Option("--workers", min=1, help="Number of processes on this machine.")]
Part = Annotated[
    str | None,
    typer.Option("--part", metavar="N/COUNT", help="Do only this part, such as 3/40 (for batch schedulers)."),
]


def changes(words: str) -> Any:
    """The option --set KEY=VALUE, which may be given several times; `words` are its help."""
    return typer.Option("--set", metavar="KEY=VALUE", help=words)
