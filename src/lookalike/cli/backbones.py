"""`lookalike backbones`: the networks to start from; `lookalike backbones fetch NAME`: one of the Hugging Face Hub."""

import json
from pathlib import Path
from typing import Annotated

import typer

from lookalike.cli.bars import bar
from lookalike.models.backbones import hub
from lookalike.models.backbones.survey import Row, survey

EXAMPLE = "lookalike backbones fetch dinov2_small --to dinov2_small"
app = typer.Typer(
    help="List the networks that `fit` can start from.\n\n"
    "Shows which are installed, what the others need, and how fast each is on this machine.",
    epilog=f"Example: {EXAMPLE}",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@app.callback()
def run(
    context: typer.Context,
    only: Annotated[str | None, typer.Option("--only", help="Only these networks: a,b,c. Default: all.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """List networks by name, with the milliseconds that an image takes here; `hf:` and `timm:` reach all others."""
    if context.invoked_subcommand is not None:
        return
    with bar("measuring networks") as progress:
        rows = survey(only.split(",") if only else (), progress)
    if as_json:
        typer.echo(json.dumps([row._asdict() for row in rows], indent=2))
        return
    typer.echo(f"{'name':<20}{'pixels':>7}{'width':>7}{'M':>7}{'ms':>7}  here, or what it needs")
    for row in rows:
        typer.echo(_line(row))


def _line(row: Row) -> str:
    numbers = "".join(
        f"{'' if value is None else format(value, '.1f'):>7}" for value in (row.millions, row.milliseconds)
    )
    facts = "; ".join(fact for fact in (row.needs or "here", row.licence, row.figure) if fact)
    return f"{row.name:<20}{row.size:>7}{row.width:>7}{numbers}  {facts}"


@app.command("fetch", epilog=f"Example: {EXAMPLE}")
def fetch(
    name: Annotated[str, typer.Argument(help="A name from the list, or hf:OWNER/NAME.")],
    to: Annotated[
        Path | None, typer.Option("--to", help="Also copy its files to this folder, for a machine that is offline.")
    ] = None,
) -> None:
    """Download a network from the Hugging Face Hub.

    Its revision and digests are recorded at the first download, and checked from then on.
    """
    place = hub.fetch(name, to)
    typer.echo(f"{name} is in {place}; use it with --backbone {name if to is None else f'hf:{to}'}")
