"""`lookalike status INDEX`: what is in it, and is it sound?"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from lookalike.cli.bars import bar

EXAMPLE = "lookalike status shop.index --check"


def run(
    place: Annotated[str, typer.Argument(metavar="INDEX", help="A folder or postgresql:// address.")],
    check: Annotated[
        bool, typer.Option("--check", help="Check for damage; the exit code is 1 if there is any.")
    ] = False,
    compact: Annotated[bool, typer.Option("--compact", help="Free the disk space of removed items.")] = False,
    backup: Annotated[Path | None, typer.Option("--backup", help="Copy the whole index into one file.")] = None,
    restore: Annotated[Path | None, typer.Option("--restore", help="Restore the index from this backup first.")] = None,
    approximate: Annotated[
        bool | None,
        typer.Option(
            "--approximate/--exact", help="On PostgreSQL: build the graph for approximate search, or drop it."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")] = False,
) -> None:
    """Show what an index holds, and check or back it up.

    Prints items, classes, columns, generations, the calibration and its age, and sizes on disk.
    """
    from lookalike.search import Index
    from lookalike.search.status import describe

    index = Index.open(place) if restore is None else Index.restore(place, restore)
    if approximate is not None:
        with bar("building the graph and measuring its recall" if approximate else "dropping the graph") as progress:
            index.approximate(approximate, progress)
    if compact:
        index.store.compact()
    if backup is not None:
        index.store.backup(backup)
    problems = index.store.check() if check else []
    content = describe(index) | ({"troubles": problems} if check else {})
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False) if as_json else _lines(content))
    if backup is not None:
        typer.echo(f"backup written to {backup}: --restore puts it back", err=True)
    if restore is not None:
        typer.echo(f"restored from {restore}; a folder keeps what it held as index.sqlite.before", err=True)
    raise typer.Exit(1 if problems else 0)


def _lines(content: dict[str, Any]) -> str:
    lines = [
        f"{name:<12} {value}"
        for name, value in content.items()
        if name not in ("troubles", "columns") and value is not None
    ]
    lines.insert(2, f"{'columns':<12} {', '.join(f'{name} ({kind})' for name, kind in content['columns'].items())}")
    if "troubles" in content:
        lines.append("check        " + ("; ".join(content["troubles"]) or "everything is sound"))
    return "\n".join(lines)
