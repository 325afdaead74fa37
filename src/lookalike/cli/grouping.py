"""What `discover`, `ask` and `review` share: photos are embedded and grouped, and the folder of a review is kept."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lookalike.cli.allocator import keep_memory
from lookalike.cli.bars import bar
from lookalike.errors import check
from lookalike.files import printable

if TYPE_CHECKING:
    from lookalike.discover.grouping import Grouping
    from lookalike.discover.photos import Photos

KNOWN = "The labels you already have: a table with path and label."


def tell_unused(source: str, known: Path | None) -> None:
    """Say so where a table of photos has labels that nobody asked to use."""
    from lookalike.discover import photos

    if known is None and photos.has_labels(source):
        given = f"--known {source} takes those that people gave as known classes"
        typer.echo(f"Groups are found without the labels in '{source}'; {given}.", err=True)


def embedded(source: str, model: Path | None, known: Path | None) -> "Photos":
    """The photos with their vectors."""
    from lookalike.discover import photos

    keep_memory()
    with ExitStack() as shown:
        return photos.photos(source, model, lambda name: shown.enter_context(bar(name)), known)


def merged(photos: "Photos") -> "Grouping":
    """All levels of their groups."""
    from lookalike.discover.grouping import hierarchy

    with bar("comparing photos") as progress:
        return hierarchy(photos.vectors, photos.known, geometry=photos.geometry, progress=progress)


def tell_unreadable(photos: "Photos") -> None:
    for name, why in photos.unreadable:
        typer.echo(f"unreadable: {printable(name)}: {why}", err=True)


def open_review(source: str, model: Path | None, known: Path | None = None, again: bool = True) -> Path:
    """The folder of a review, in which groups are found if there are none.

    `again`: they are also found once there is another model, or photos or known labels are others. The labels of the
    table `known` stay known until there is another one.
    """
    from lookalike.discover import kept, photos
    from lookalike.search.stores.places import review_folder

    check("://" not in source, "answers are kept in a folder beside the index: an index in a database has none")
    place = review_folder(source)
    before = kept.load(place) if kept.is_begun(place) else None
    if before is not None and place == Path(source).expanduser():  # the review itself, wherever its photos are
        check(
            model is None and known is None, "give the photos or the index, not their review, with --model or --known"
        )
        return place
    state = photos.state_of(source)
    if before is None:
        tell_unused(source, known)
    else:
        changes = {
            "Photos have come or gone": before.state != state,
            "The known labels are others": known is not None and photos.labels_of(known) != before.photos.given,
            "This is another model": photos.fingerprint_of(model) not in ("", before.photos.fingerprint),
        }
        if not again or not any(changes.values()):
            return place
        changed = next(words for words, true in changes.items() if true)
        typer.echo(f"{changed}: groups are found again; your answers and changes stay.", err=True)
        model = model or (Path(before.photos.model) if before.photos.model else None)
    _find_groups(source, place, state, model, known, {} if before is None else before.photos.given)
    return place


def _find_groups(
    source: str, place: Path, state: str, model: Path | None, known: Path | None, labels: dict[str, str]
) -> None:
    from lookalike.discover import kept, photos
    from lookalike.discover.beginning import begin

    kept.check_geometry(photos.geometry_of(source, model))
    found = embedded(source, model, known)
    if known is None and not found.ids:
        found = found.labelled(labels)
        lost = len(labels) - len(found.given)
        if lost:
            typer.echo(
                f"Known labels without their photo: {lost:,}. If photos have moved, give --known again.", err=True
            )
    begin(place, found, merged(found), state)
    tell_unreadable(found)
