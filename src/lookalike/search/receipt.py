"""What an index says when it has forgotten items, for whoever asked for it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from lookalike.files import printable
from lookalike.search.stores import Forgotten


@dataclass(frozen=True)
class Receipt:
    """What was forgotten when, what was written anew for it, and what may still hold it."""

    index: str
    time: str
    ids: Sequence[str]
    items: int
    marks: int
    rewritten: Sequence[str]
    beyond: Sequence[str]  # places that the index cannot reach
    photos: Sequence[str]  # files of the items themselves, which are not touched

    @staticmethod
    def of(index: str, ids: Sequence[str], forgotten: Forgotten, photos: Sequence[str]) -> "Receipt":
        now = datetime.now(UTC).isoformat(timespec="seconds")
        files = [printable(photo) for photo in photos]
        return Receipt(
            index,
            now,
            list(ids),
            forgotten.items,
            forgotten.marks,
            list(forgotten.rewritten),
            list(forgotten.beyond),
            files,
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[str]:
        """The same for people."""
        lines = [
            f"{self.time}  {self.items:,} item{'s' * (self.items != 1)} and {self.marks:,} "
            f"mark{'s' * (self.marks != 1)} forgotten by {self.index}",
            f"written anew or deleted: {', '.join(self.rewritten)}",
            *(f"beyond reach: {place}" for place in self.beyond),
        ]
        return lines + [f"not touched: the photo itself, {photo}" for photo in self.photos]
