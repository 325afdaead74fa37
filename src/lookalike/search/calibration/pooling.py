"""How many photos of a thing speak for it: is the first thing more often the one that is meant by two than by one?

Photos of known things are asked in the index as it is, each without itself. An item of the index is asked only where
its thing has two photos left: with one left beside things that have two, pooling would win by that alone. Two photos
speak where the first thing is right more often beyond the noise, and less often beyond it for no number of photos.
"""

import numpy as np
from jaxtyping import Float64, Int64

from lookalike.evaluation.statistics import bootstrap
from lookalike.search.calibration.trials import Gallery, TrialNeighbours
from lookalike.search.quality import BEST_PHOTOS, POOLED, Trial

SIZES = {  # photos of the thing that is meant
    "1": (1, 1),
    "2 or 3": (2, 3),
    "4 to 7": (4, 7),
    "8 or more": (8, 1 << 60),
}


def compare_pooling(near: TrialNeighbours, gallery: Gallery) -> list[Trial]:
    """Things by their best two photos beside things by their best one; nothing where there is nobody to ask."""
    counts = np.bincount(gallery.classes)
    known = np.flatnonzero((near.classes >= 0) & (near.classes < len(counts)))
    own = near.itself[known] >= 0
    left = counts[near.classes[known]] - own
    some = left >= np.where(own, POOLED, 1)
    if not some.any():
        return []
    rows, left = known[some], left[some]
    right = [first_things(near, gallery, rows, number) == near.classes[rows] for number in (1, POOLED)]
    gain, names = right[1].astype(float) - right[0], near.classes[rows].astype(str)
    every = {size: (left >= least) & (left <= most) for size, (least, most) in SIZES.items()}
    parts = {size: part for size, part in every.items() if part.any()}
    intervals = [bootstrap.interval(gain[part], names[part].tolist()) for part in parts.values()]
    interval = bootstrap.interval(gain, names.tolist())
    kept = bool(interval[0] > 0 and all(high >= 0 for _, high in intervals))
    by_size = {size: float(gain[part].mean()) for size, part in parts.items()}
    best, two = (float(one.mean()) for one in right)
    return [
        Trial("the best photo", best, 0.0, (0.0, 0.0), {}, True),
        Trial(BEST_PHOTOS, two, float(gain.mean()), interval, by_size, kept),
    ]


def first_things(
    near: TrialNeighbours, gallery: Gallery, rows: Int64[np.ndarray, " some"], pooled: int
) -> Int64[np.ndarray, " some"]:
    """The thing whose best photos are the most similar, by their mean, for each of these queries.

    A photo of it that is not among the hits counts as the last of them, so it may be less.
    """
    found = np.isfinite(near.similarities[rows])
    labels = np.where(found, gallery.classes[near.places[rows]], -1)
    similarities = np.where(found, near.similarities[rows], np.inf)
    last, sizes = similarities.min(1, keepdims=True), np.bincount(gallery.classes)
    order = np.argsort(labels, axis=1, kind="stable")
    labels, similarities = np.take_along_axis(labels, order, 1), np.take_along_axis(similarities, order, 1)
    itself = np.where(near.itself[rows] >= 0, near.classes[rows], -2)[:, None]
    number = np.clip(sizes[labels] - (labels == itself), 1, pooled)
    total = np.zeros(labels.shape)
    for place in range(pooled):
        further = _shifted(similarities, place, np.inf)
        same = _shifted(labels, place, -2) == labels
        total += np.where(place < number, np.where(same, further, last), 0.0)
    begins = np.diff(labels, axis=1, prepend=-2) != 0
    scores = np.where(begins & (labels >= 0), total / number, -np.inf)
    return np.asarray(np.take_along_axis(labels, scores.argmax(1)[:, None], 1)[:, 0])


def _shifted(
    values: Float64[np.ndarray, "n k"] | Int64[np.ndarray, "n k"], places: int, beyond: float
) -> Float64[np.ndarray, "n k"]:
    """What stands so many places further in each row."""
    result = np.full(values.shape, float(beyond))
    result[:, : values.shape[1] - places] = values[:, places:]
    return result
