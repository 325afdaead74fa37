"""`lookalike list KIND`: the members of a catalogue, what each does and which settings it takes."""

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from lookalike import data, losses, miners, models, regularisers, samplers
from lookalike.catalog import presets_of, settings_of
from lookalike.errors import unknown

EXAMPLE = "lookalike list losses"

CATALOGUES: dict[str, Mapping[str, Callable[..., Any]]] = {
    "data": data.MEMBERS,
    "losses": losses.MEMBERS,
    "miners": miners.MEMBERS,
    "models": models.MEMBERS,
    "regularisers": regularisers.MEMBERS,
    "samplers": samplers.MEMBERS,
}


def first_sentence(member: Callable[..., Any]) -> str:
    return (inspect.getdoc(member) or "").split("\n\n")[0].replace("\n", " ")


def run(
    kind: Annotated[str, typer.Argument(help=f"One of {', '.join(CATALOGUES)}. Default: list these kinds.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """List losses, miners, samplers, models and data sets.

    Each is shown with its settings; the names are those that recipes use.
    """
    if not kind:
        typer.echo("\n".join(CATALOGUES))
        return
    if kind not in CATALOGUES:
        raise unknown("kind", kind, CATALOGUES)
    rows = [
        {
            "name": name,
            "does": first_sentence(member),
            "settings": settings_of(member),
            "presets": sorted(presets_of(member)),
        }
        for name, member in sorted(CATALOGUES[kind].items())
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        typer.echo(f"{row['name']:<{width}}  {row['does']}")
        typer.echo(f"{'':<{width}}    settings: {', '.join(row['settings']) or 'none'}")
        if row["presets"]:
            typer.echo(f"{'':<{width}}    presets: {', '.join(row['presets'])}")
