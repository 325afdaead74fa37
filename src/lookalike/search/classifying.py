"""Labels for pictures, from what they look like."""

from collections.abc import Callable
from typing import Any

from lookalike.errors import UserError
from lookalike.image_files import UnreadableError
from lookalike.search.adding.sources import Entry, Listing
from lookalike.search.adding.update import Progress
from lookalike.search.items import Answer, Classified
from lookalike.search.queries import pixels_of
from lookalike.search.stores import complete


def classify(listing: Listing, search: Callable[[Any], Answer], progress: Progress | None) -> list[Classified]:
    """The label of every readable picture of `listing`; refused where a shard is missing in an answer."""
    result = []
    for place, entry in enumerate(listing.entries):
        pixels = readable(entry)
        if pixels is None:
            continue
        (answer,) = complete([search(pixels)])
        similarity = next((hit.similarity for hit in answer.hits if hit.label == answer.label), 0.0)
        result.append(Classified(entry.item.path or entry.item.id, answer.label, similarity, answer.verdict))
        if progress is not None:
            progress(place + 1, len(listing.entries))
    return result


def readable(entry: Entry) -> Any:
    """The picture of an entry; None where it cannot be read."""
    try:
        return entry.pixels() if entry.pixels is not None else pixels_of(entry.item.path)
    except (UserError, UnreadableError):
        return None
