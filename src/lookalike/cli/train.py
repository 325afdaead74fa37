"""`lookalike train RECIPE.toml`: a run as a recipe describes it."""

from pathlib import Path
from typing import Annotated

import typer

from lookalike.cli import running

EXAMPLE = (
    "lookalike train recipes/roth_cub200.toml cub200=birds/ --set loss.name=margin --set miner.name=distance_weighted"
)


def run(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE.toml", help="See recipes/, or recipe.toml of a run.")],
    source: Annotated[
        str | None, typer.Argument(metavar="[DATA]", help="A folder, a table, a name, or name=folder.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="Folder of the run.")] = Path("run"),
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change the recipe: --set loss.name=triplet")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in RUN.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Replace the run in RUN.")] = False,
    audit: Annotated[bool, typer.Option("--audit/--no-audit", help="Check all images first.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also log to RUN/tensorboard.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")] = False,
) -> None:
    """Train as a recipe says; every key can be set from here, unknown ones are refused."""
    running.run(
        out, as_json, tensorboard,
        source=source, recipe=recipe, overrides=settings or [], audit=audit, resume=resume, fresh=fresh,
    )  # fmt: skip
