"""Labels for pictures, from what they look like."""

from collections.abc import Callable
from typing import Any

from lookalike.errors import UserError
from lookalike.image_files import UnreadableError
from lookalike.search.adding.sources import Entry, Listing
from lookalike.search.adding.update import Progress
from lookalike.search.calibration.evidence import HITS
from lookalike.search.items import Answer, Classified
from lookalike.search.queries import pixels_of
from lookalike.search.stores import complete
from lookalike.search.things import text_of


def classify(listing: Listing, search: Callable[..., Answer], progress: Progress | None) -> list[Classified]:
    """The label of every picture of `listing`, or why it cannot be read; refused where a shard is missing."""
    result = []
    for place, entry in enumerate(listing.entries):
        result.append(_classified(entry, search))
        if progress is not None:
            progress(place + 1, len(listing.entries))
    return result


def _classified(entry: Entry, search: Callable[..., Answer]) -> Classified:
    name = entry.item.path or entry.item.id
    try:
        pixels = _read(entry)
    except (UserError, UnreadableError) as error:
        return Classified(name, problem=str(error))
    (answer,) = complete([search(pixels, HITS)])  # those that the label follows from
    similarity = next((hit.similarity for hit in answer.hits if answer.label in (hit.label, text_of(hit.thing))), 0.0)
    return Classified(name, answer.label, similarity, answer.verdict, answer.second, answer.chance)


def readable(entry: Entry) -> Any:
    """The picture of an entry; None where it cannot be read."""
    try:
        return _read(entry)
    except (UserError, UnreadableError):
        return None


def _read(entry: Entry) -> Any:
    return entry.pixels() if entry.pixels is not None else pixels_of(entry.item.path)
