"""What the similarity of a query and a hit is made of, place by place of both pictures."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

View = tuple[float, float, float, float]  # x, y, width and height, in shares of a picture
ROWS, COLUMNS = ("upper", "middle", "lower"), ("left", "centre", "right")


@dataclass(frozen=True)
class Heat:
    """How much of a similarity comes from each place of a picture.

    values: row by row; they add up to the similarity, and may be negative.
    view: the part of the picture that the network saw, over which the values lie.
    """

    values: Float[np.ndarray, "rows columns"]
    view: View

    @property
    def where(self) -> str:
        """The ninth of the view whose places give most, in words."""
        row, column = (((np.arange(size) + 0.5) * 3 / size).astype(int) for size in self.values.shape)
        ninths = (3 * row[:, None] + column).ravel()
        counts, sums = np.bincount(ninths, minlength=9), np.bincount(ninths, self.values.ravel(), 9)
        best = int(np.where(counts > 0, sums / np.maximum(counts, 1), -np.inf).argmax())
        return "middle" if best == 4 else f"{ROWS[best // 3]} {COLUMNS[best % 3]}"

    def as_json(self) -> dict[str, Any]:
        return {"values": self.values.round(6).tolist(), "view": [round(value, 6) for value in self.view]}


@dataclass(frozen=True)
class Why:
    """What the `similarity` of a query and a hit is made of: the heat on both pictures.

    photos: how many rank the thing that was found; the hit is the best of them.
    """

    similarity: float
    query: Heat
    hit: Heat
    photos: int = 1

    @property
    def words(self) -> str:
        """The picture in a sentence, for those who cannot see it."""
        if self.photos == 1:
            return self._described
        return f"{self._described} This is the best of the {self.photos} photos whose mean similarity ranked it."

    @property
    def _described(self) -> str:
        if self.query.values.size == self.hit.values.size == 1:
            return (
                f"The similarity of {self.similarity:.3f} comes from whole pictures: the network's map has one place."
            )
        places = sorted(self.query.values.ravel().tolist(), reverse=True)
        enough = np.cumsum(places) >= self.similarity / 2
        if self.similarity <= 0 or not enough.any():
            return f"The similarity of {self.similarity:.3f} comes from no place in particular."
        few = int(enough.argmax()) + 1
        return (
            f"Half of the similarity of {self.similarity:.3f} comes from {few} of {len(places)} places, "
            f"most from the {self.query.where} of the query and the {self.hit.where} of the hit."
        )

    def as_json(self) -> dict[str, Any]:
        heats = {"query": self.query.as_json(), "hit": self.hit.as_json()}
        return {"similarity": self.similarity, "words": self.words} | heats
