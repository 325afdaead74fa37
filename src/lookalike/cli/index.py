"""`lookalike index MODEL DATA --out INDEX`: images that can be searched."""

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from lookalike.cli.allocator import keep_memory
from lookalike.cli.arguments import On
from lookalike.cli.bars import bar
from lookalike.errors import UserError, check
from lookalike.files import printable

EXAMPLE = "lookalike index run/model photos/ --out shop.index"


def run(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="A saved model, such as run/model, or hf:OWNER/NAME; `none` if DATA are vectors."
        ),
    ],
    source: Annotated[
        list[str], typer.Argument(metavar="DATA", help="Folders, tables, images, globs, data sets, or vectors (.npz).")
    ],
    out: Annotated[str, typer.Option("--out", help="The index: a folder or postgresql:// address.")],
    thing: Annotated[
        str | None,
        typer.Option(
            "--thing",
            help="Answer with things: all photos with the same value in this column, together; `id`: with photos.",
        ),
    ] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Also remove items of DATA whose files are gone.")] = False,
    new_generation: Annotated[
        bool,
        typer.Option("--new-generation", help="Change to another model: embed everything again, then switch."),
    ] = False,
    on: On = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
) -> None:
    """Make an index of images, or bring one up to date.

    Only images that are new or have changed are embedded.
    """
    from lookalike.workers import Workers

    keep_memory()
    check(on is None or not new_generation, "--new-generation embeds on this machine: leave out --on")
    try:
        index = _opened(model, Path(source[0]), out, new_generation, prune)
        updates, known = [], index.calibration
        for each in source:
            with bar(f"indexing {each}") as progress:
                work = Workers(on=on)
                updates.append(index.add(each, thing=thing, prune_missing=prune, progress=progress, workers=work))
        index.ready()
    except KeyboardInterrupt:
        raise UserError("stopped; what is indexed stays, the same command continues") from None
    for name, why in (problem for update in updates for problem in update.unreadable):
        typer.echo(f"unreadable: {name}: {why}", err=True)
    if as_json:
        content = {"items": len(index), "updates": [asdict(update) for update in updates]}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    for each, update in zip(source, updates, strict=True):
        typer.echo(f"{printable(str(each))}: {update}")
    if known is not None and index.calibration is None:
        typer.echo("The calibration was about other things and is dropped.")
    name = index.shown
    typer.echo(index.promise)
    typer.echo(f"{len(index):,} items in {name}. Search with: lookalike search {shlex.quote(name)} IMAGE")


def _opened(model: str, first: Path, out: str, new_generation: bool, prune: bool) -> Any:
    """The index in `out`, made where there is none, with the vectors of this model."""
    from lookalike.models import Model
    from lookalike.search import Index
    from lookalike.search.adding.generation import renew
    from lookalike.search.calibration import kept
    from lookalike.search.index import NO_MODEL
    from lookalike.search.stores.places import shown

    loaded = None if model == NO_MODEL else Model.load(model)
    if not Index.exists(out):
        check(not new_generation, f"there is no index in '{shown(out)}' yet: leave out --new-generation")
        return Index.create(out, model) if loaded is not None else Index.for_vectors(out, first)
    index = Index.open(out)
    if loaded is None or not new_generation:
        if loaded is not None:
            index.check_model(loaded)
            if not len(index):  # the try that made it may have been stopped before it had the model
                index.keep_model(loaded)
        return index
    with bar("embedding everything again") as progress:
        gone = renew(index, loaded, prune, progress)
    kept.adopt(index.store, Path(model), loaded)
    for name in gone:
        typer.echo(f"removed: {name}, its picture can no longer be read", err=True)
    return index
