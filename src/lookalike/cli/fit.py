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
        str | None,
        typer.Argument(metavar="DATA", help="A folder, a table, a data set, or dataset=folder. Default: glyphs."),
    ] = None,
    out: RunFolder = Path("run"),
    minutes: Annotated[
        float | None, typer.Option("--minutes", help="Time limit for the whole run, evaluation included.")
    ] = None,
    dim: Annotated[
        int | None,
        typer.Option("--dim", help="Maximum size of the embedding. Default: as many dimensions as improve it."),
    ] = None,
    backbone: Annotated[
        str | None, typer.Option("--backbone", help="The network to start from; `lookalike backbones` lists them.")
    ] = None,
    backbones: Annotated[
        str | None, typer.Option("--backbones", help="Networks to choose from: a,b,c. Default: those installed.")
    ] = None,
    most_ms: Annotated[
        float | None, typer.Option("--most-ms", help="Slowest acceptable network, in milliseconds per image.")
    ] = None,
    refit_on_all: Annotated[
        bool,
        typer.Option(
            "--refit-on-all", help="After testing, train again on all classes. This takes extra time, beyond --minutes."
        ),
    ] = False,
    marks: Annotated[
        str | None,
        typer.Option(
            "--with",
            help="Also learn from the marks in an index, which moves to the new model if it is better, or in a table.",
        ),
    ] = None,
    settings: Annotated[list[str] | None, changes("Change a setting of the recipe: --set optimiser.lr=1e-4")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Random seed.")] = None,
    device: Annotated[
        str | None, typer.Option("--device", help="cpu, cuda or mps. Default: the best available.")
    ] = None,
    resume: Resume = False,
    fresh: Fresh = False,
    audit: Audit = True,
    tensorboard: TensorBoard = False,
    track: Track = None,
    as_json: ResultAsJson = False,
) -> None:
    """Train a model on some classes and test it on the others.

    Every subfolder of DATA is a class. The settings are chosen from your images and from what is installed, and written
    to RUN/recipe.toml. Ctrl-C saves the run and prints the command that continues it. With --with shop.index the model
    also learns from what people marked in that index, and the index moves to the new model if that one is better than
    its own (docs/loop.md).
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
