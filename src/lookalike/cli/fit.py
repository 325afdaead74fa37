"""`lookalike fit [DATA] --out RUN`: from a folder of labelled images to a proven model."""

from pathlib import Path
from typing import Annotated

import typer

from lookalike.cli import running

EXAMPLE = "lookalike fit photos/ --out run --minutes 20"


def run(
    source: Annotated[
        str | None, typer.Argument(metavar="[DATA]", help="A folder, a table, a name, or name=folder. Default: glyphs.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="Folder of the run.")] = Path("run"),
    minutes: Annotated[
        float | None, typer.Option("--minutes", help="Time for the whole run, evaluation included.")
    ] = None,
    dim: Annotated[
        int | None, typer.Option("--dim", help="Most dimensions of the model; default: as many as help.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change the recipe: --set optimiser.lr=1e-4")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of every random choice.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, mps; default: the best there is.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in RUN.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Replace the run in RUN.")] = False,
    audit: Annotated[bool, typer.Option("--audit/--no-audit", help="Check all images first.")] = True,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also log to RUN/tensorboard.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")] = False,
) -> None:
    """Train on some classes, prove it on others, save the model and a report.

    Classes are the folders of DATA. The recipe is chosen from the images and from what is installed; RUN/recipe.toml
    has it written out. Ctrl-C saves the run and prints the command that continues it.
    """
    named = {"train.minutes": minutes, "seed": seed, "train.device": device, "train.dim": dim, "model.dim": dim}
    overrides = [*(f"{key}={value}" for key, value in named.items() if value is not None), *(settings or [])]
    running.run(out, as_json, tensorboard, source=source, overrides=overrides, audit=audit, resume=resume, fresh=fresh)
