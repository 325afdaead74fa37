"""`lookalike fit [DATA] --out RUN`: from a folder of labelled images to a proven model."""

import json
from pathlib import Path
from typing import Annotated

import typer

from lookalike.cli import running
from lookalike.cli.arguments import Audit, Fresh, ResultAsJson, Resume, RunFolder, TensorBoard, Track, changes

EXAMPLE = "lookalike fit photos/ --out run --minutes 10"


def run(
    source: Annotated[
        str | None, typer.Argument(metavar="[DATA]", help="A folder, a table, a name, or name=folder. Default: glyphs.")
    ] = None,
    out: RunFolder = Path("run"),
    minutes: Annotated[
        float | None, typer.Option("--minutes", help="Time for the whole run, evaluation included.")
    ] = None,
    dim: Annotated[
        int | None, typer.Option("--dim", help="Maximum dimensions of the embedding; default: as many as help.")
    ] = None,
    backbone: Annotated[
        str | None, typer.Option("--backbone", help="The network to start from, as lookalike backbones names it.")
    ] = None,
    backbones: Annotated[
        str | None, typer.Option("--backbones", help="Networks to choose from: a,b,c; default: those installed.")
    ] = None,
    most_ms: Annotated[
        float | None, typer.Option("--most-ms", help="Maximum milliseconds per image of the chosen network.")
    ] = None,
    refit_on_all: Annotated[
        bool,
        typer.Option(
            "--refit-on-all", help="After the proof, train again on all classes; this takes longer than --minutes."
        ),
    ] = False,
    marks: Annotated[
        str | None,
        typer.Option(
            "--with", help="An index or a table of labels with marks to learn from; the index gets the new model."
        ),
    ] = None,
    settings: Annotated[list[str] | None, changes("Change the recipe: --set optimiser.lr=1e-4")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of every random choice.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, mps; default: the best available.")] = None,
    resume: Resume = False,
    fresh: Fresh = False,
    audit: Audit = True,
    tensorboard: TensorBoard = False,
    track: Track = None,
    as_json: ResultAsJson = False,
) -> None:
    """Train on some classes, prove it on others, save the model and a report.

    Classes are the folders of DATA. The recipe is chosen from the images and from what is installed; RUN/recipe.toml
    has it written out. Ctrl-C saves the run and prints the command that continues it. --with shop.index adds what
    people marked there, and the index moves to the new model if that is better than the one in use (docs/loop.md).
    """
    named = {
        "train.minutes": minutes,
        "seed": seed,
        "train.device": device,
        "train.dim": dim,
        "model.dim": dim,
        "model.backbone": backbone,
        "networks.backbones": None if backbones is None else json.dumps(backbones.split(",")),
        "train.most_ms": most_ms,
        "data.marks": None if marks is None else json.dumps(_whole(marks)),
        "train.refit_on_all": "true" if refit_on_all else None,
    }
    overrides = [*(f"{key}={value}" for key, value in named.items() if value is not None), *(settings or [])]
    options = {"audit": audit, "resume": resume, "fresh": fresh}
    running.run(out, as_json, tensorboard, track, source=source, overrides=overrides, **options)


def _whole(place: str) -> str:
    """The place as it stays the same in another folder."""
    return place if "://" in place else str(Path(place).expanduser().absolute())
