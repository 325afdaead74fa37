"""A way to better answers, tried on the user's own images and kept only where it gains beyond the noise.

`flip`: the mean of the picture and its mirror image as the query. It must gain over all sizes of classes together, and
lose in none of them. Query expansion and k-reciprocal re-ranking were taken out: they lowered the first hit of small
classes (docs/search.md has the figures).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

GONE = ("expansion", "power", "reciprocal", "rule")


@dataclass(frozen=True)
class Quality:
    """What is switched on for an index; nothing by default."""

    flip: bool = False

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> "Quality":
        """Version 0.2.0 wrote more: what is gone is off."""
        return Quality(**{name: value for name, value in content.items() if name not in GONE})

    @property
    def names(self) -> list[str]:
        """What is on, in words."""
        return ["flip"] if self.flip else []


@dataclass(frozen=True)
class Trial:
    """One candidate beside plain search: the share of right labels over all sizes of classes, and in pairs."""

    name: str
    recall: float
    difference: float
    interval: tuple[float, float]  # of that, over classes
    by_size: Sequence[float]  # the differences for classes of one photo, of three, and of all
    kept: bool
