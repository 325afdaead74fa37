"""`lookalike train RECIPE.toml`: a run as a recipe describes it."""

from pathlib import Path
from typing import Annotated

import typer

from lookalike.cli import running
from lookalike.cli.arguments import Audit, Data, Fresh, ResultAsJson, Resume, RunFolder, TensorBoard, Track, changes

EXAMPLE = "lookalike train papers/roth/protocol.toml cub200=birds/ --set loss.name=triplet"


def run(
    recipe: Annotated[
        Path,
        typer.Argument(metavar="RECIPE.toml", help="A recipe, such as one in papers/, or the recipe.toml of a run."),
    ],
    source: Data = None,
    out: RunFolder = Path("run"),
    settings: Annotated[list[str] | None, changes("Change a setting of the recipe: --set loss.name=triplet")] = None,
    resume: Resume = False,
    fresh: Fresh = False,
    audit: Audit = False,
    tensorboard: TensorBoard = False,
    track: Track = None,
    as_json: ResultAsJson = False,
) -> None:
    """Train by the settings in a recipe file.

    --set changes any setting of the recipe; unknown settings are refused.
    """
    running.run(
        out,
        as_json,
        tensorboard,
        track,
        source=source,
        recipe=recipe,
        overrides=settings or [],
        audit=audit,
        resume=resume,
        fresh=fresh,
    )
