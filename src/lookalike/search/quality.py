"""Ways to better answers, tried on the user's own images and kept only where they gain beyond the noise.

`flip`: the mean of the picture and its mirror image as the query. `pooled`: how many photos of a thing speak for it,
the best one or the best two. Each must gain over all sizes of classes together; flip must not lose in any of them,
pooling not beyond the noise for any number of photos. Query expansion and k-reciprocal re-ranking were taken out: they
lowered the first hit of small classes (docs/search_measured.md has the figures).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

GONE = ("expansion", "power", "reciprocal", "rule", "local")
POOLED = 2  # photos of a thing that speak for it, where that gains
FLIP, BEST_PHOTOS = "flip", f"the best {POOLED} photos"  # what they are called


@dataclass(frozen=True)
class Quality:
    """What is switched on for an index; nothing by default."""

    flip: bool = False
    pooled: int = 1

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> "Quality":
        """Earlier versions wrote more: what is gone is off."""
        result = Quality(**{name: value for name, value in content.items() if name not in GONE})
        if result.pooled not in (1, POOLED):
            raise ValueError(f"{result.pooled} photos are not pooled")
        return result

    @property
    def names(self) -> list[str]:
        """What is on, in words."""
        on = {FLIP: self.flip, BEST_PHOTOS: self.pooled > 1}
        return [name for name, switched in on.items() if switched]


@dataclass(frozen=True)
class Trial:
    """One candidate beside plain search: the share of right labels over all sizes of classes, and in pairs.

    name: as in `Quality.names`. by_size: the differences by the photos of the class or thing that is meant. kept:
    whether it helps, and so is switched on unless that was not wanted.
    """

    name: str
    recall: float
    difference: float
    interval: tuple[float, float]  # of that, over classes
    by_size: Mapping[str, float]
    kept: bool
