"""Labels for pictures, from what they look like."""

from collections.abc import Callable
from typing import Any

from lookalike.errors import UserError
from lookalike.image_files import UnreadableError
from lookalike.progress import Progress
from lookalike.search.adding.sources import Entry, Listing
from lookalike.search.calibration.evidence import HITS
from lookalike.search.items import Answer, Classified
from lookalike.search.queries import pixels_of
from lookalike.search.stores import complete
from lookalike.search.things import text_of

Search = Callable[[Any, int], Answer]


def classify(listing: Listing, search: Search, labelled: Search, progress: Progress | None) -> list[Classified]:
    """The label of every picture of `listing`, or why it cannot be read; refused where a shard is missing.

    `labelled` searches among items with labels only, which takes longer.
    """
    result = []
    for place, entry in enumerate(listing.entries):
        result.append(_classified(entry, search, labelled))
        if progress is not None:
            progress(place + 1, len(listing.entries))
    return result


def _classified(entry: Entry, search: Search, labelled: Search) -> Classified:
    name = entry.item.path or entry.item.id
    try:
        pixels = _read(entry)
    except (UserError, UnreadableError) as error:
        return Classified(name, problem=str(error))
    (answer,) = complete([search(pixels, HITS)])  # a label follows from so many
    similarity = _similarity(answer)
    if similarity is None:  # the first hits have no labels
        (answer,) = complete([labelled(pixels, HITS)])
        similarity = _similarity(answer)
    return Classified(name, answer.label, similarity or 0.0, answer.verdict, answer.second, answer.chance)


def _similarity(answer: Answer) -> float | None:
    """That of the nearest hit with the label; None: none of them has it."""
    named = (hit for hit in answer.hits if answer.label is not None and answer.label in (hit.label, text_of(hit.thing)))
    return next((hit.similarity for hit in named), None)


def readable(entry: Entry) -> Any:
    """The picture of an entry; None where it cannot be read."""
    try:
        return _read(entry)
    except (UserError, UnreadableError):
        return None


def _read(entry: Entry) -> Any:
    return entry.pixels() if entry.pixels is not None else pixels_of(entry.item.path)
