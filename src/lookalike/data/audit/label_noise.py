"""How many labels are wrong, and which? The chance of every label by the means of classes, without the image itself.

Chances are softmax(τ · mean similarity to the images of a class); each image counts in the mean of its class as much as
its own label is likely, so that wrong ones do not pull it; three rounds. τ makes the given labels likeliest.

The share of wrong labels has two bounds. A tenth of all labels is made wrong, at random or to the class that an image
looks most like. Where the share F(t) of these has a chance of at most t, and the share G(t) of the others, no more than
G(t) / F(t) of the others can be wrong in the same way (Scott, AISTATS 2015: the largest share of one distribution in
another). Errors at random are the easiest to see and give the lower bound, errors to look-alikes, the hardest, the
upper one, each the least of nine limits of 95% of a count on its side. The upper one is no limit of 95% itself, because
nine hold together less often than one; but G(t) counts right labels too, which leaves room. The lower one holds where
some right labels are seen to be right (where vectors tell nothing, every label looks wrong); from an upper bound of one
half on, nothing is claimed.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lookalike.errors import check
from lookalike.geometry import normalise

ROUNDS = 3
SHARPNESS = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
SAMPLE = 2048  # images that sharpness is chosen with
BLOCK = 2048
LEAST = 1e-3  # weight, and chance in a logarithm
CHANGED = 0.1  # of the labels, to see what wrong ones look like
DRAWS = 3
Z = 1.645  # standard deviations of 95%
CONCLUSIVE = 0.5  # an upper bound from which on nothing is claimed
QUANTILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


class LabelChances(NamedTuple):
    """The chance of each label, the likeliest other class, and the chance of that."""

    own: Float[Tensor, " n"]
    other: Int64[Tensor, " n"]
    rival: Float[Tensor, " n"]


class WrongLabels(NamedTuple):
    """Between which shares the wrong labels lie."""

    low: float
    high: float

    @property
    def conclusive(self) -> bool:
        """Whether the vectors can tell wrong labels from classes that look alike."""
        return self.high < CONCLUSIVE

    def __str__(self) -> str:
        if self.conclusive:
            bounds = f"Between {self.low:.0%} and {self.high:.0%} of the labels are wrong"
            return f"{bounds}, as estimated from labels that were made wrong on purpose."
        return "These vectors cannot tell how many labels are wrong: too many classes look alike in them."


def label_chances(embeddings: Float[Tensor, "n d"], labels: Int64[Tensor, " n"]) -> LabelChances:
    """The chance of each of `labels` (0, 1, …) by the other images.

    >>> angles = torch.tensor([0.0, 0.1, 0.2, 0.3, 1.5, 1.6, 1.7, 0.15])
    >>> points = torch.stack([angles.cos(), angles.sin()], 1)
    >>> int(label_chances(points, torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])).own.argmin())
    7
    """
    check(len(embeddings) == len(labels), f"{len(embeddings)} embeddings for {len(labels)} images: give one each")
    check(int(labels.max()) > 0, "labels of one class alone cannot be doubted: give images of at least two")
    unit = normalise(embeddings, "sphere")
    weights = torch.ones(len(unit))
    result = LabelChances(weights, labels, weights)
    for _ in range(ROUNDS):
        sums = torch.zeros(int(labels.max()) + 1, unit.shape[1]).index_add(0, labels, unit * weights[:, None])
        masses = torch.zeros(len(sums)).index_add(0, labels, weights)
        sample = torch.arange(0, len(unit), max(1, len(unit) // SAMPLE))
        means = _mean_similarities(unit, labels, weights, sums, masses, sample)
        place = torch.arange(len(sample))
        fits = [
            float((means * factor).softmax(1)[place, labels[sample]].clamp(min=LEAST).log().mean())
            for factor in SHARPNESS
        ]
        sharpness = SHARPNESS[fits.index(max(fits))]
        parts = []
        for rows in torch.split(torch.arange(len(unit)), BLOCK):
            chances = (_mean_similarities(unit, labels, weights, sums, masses, rows) * sharpness).softmax(1)
            mine = chances.gather(1, labels[rows, None])[:, 0]
            rival, other = chances.scatter(1, labels[rows, None], -1.0).max(1)
            parts.append((mine, other, rival))
        result = LabelChances(*(torch.cat(column) for column in zip(*parts, strict=True)))
        weights = result.own.clamp(min=LEAST)
    return result


def _mean_similarities(
    unit: Tensor, labels: Tensor, weights: Tensor, sums: Tensor, masses: Tensor, rows: Tensor
) -> Float[Tensor, "m classes"]:
    """The mean similarity of some images to every class, each without itself."""
    own, mine = labels[rows, None], weights[rows]
    products = unit[rows] @ sums.T
    means = products / masses.clamp(min=LEAST)
    alone = (products.gather(1, own)[:, 0] - mine) / (masses[own[:, 0]] - mine).clamp(min=LEAST)
    return means.scatter(1, own, alone[:, None])


def wrong_labels(embeddings: Float[Tensor, "n d"], labels: Int64[Tensor, " n"], seed: int = 0) -> WrongLabels:
    """Between which shares the wrong ones of `labels` lie; `seed` draws the labels that are changed to see."""
    generator = torch.Generator().manual_seed(seed)
    known = label_chances(embeddings, labels)
    classes = int(labels.max()) + 1
    bounds = []
    for alike in (False, True):
        changed, others = [], []
        for _ in range(DRAWS):
            rows = torch.randperm(len(labels), generator=generator)[: max(1, int(CHANGED * len(labels)))]
            wrong = labels.clone()
            shift = torch.randint(1, classes, (len(rows),), generator=generator)
            wrong[rows] = known.other[rows] if alike else (labels[rows] + shift) % classes
            own = label_chances(embeddings, wrong).own
            untouched = torch.ones(len(labels), dtype=torch.bool)
            untouched[rows] = False
            changed.append(own[rows])
            others.append(own[untouched])
        bounds.append(_largest_share(torch.cat(changed), torch.cat(others)))
    (low, _), (_, high) = bounds
    return WrongLabels(min(low, high), high)


def _largest_share(wrong: Tensor, given: Tensor) -> tuple[float, float]:
    """No more than this share of the `given` chances can come from where the `wrong` ones do: both least limits."""
    lows, highs = [], []
    count = len(given) / DRAWS  # images, of which each is there several times
    for quantile in QUANTILES:
        at_most = wrong.quantile(quantile)
        reached = float((wrong <= at_most).float().mean())
        low, high = _poisson_limits(float((given <= at_most).float().mean()) * count)
        lows.append(low / count / reached)
        highs.append(high / count / reached)
    return min(1.0, *lows), min(1.0, *highs)


def _poisson_limits(count: float) -> tuple[float, float]:
    """Means of which a `count` would be as high or as low with a chance of 5% (Wilson and Hilferty, PNAS 1931).

    >>> [round(limit, 1) for limit in _poisson_limits(10)]
    [5.4, 17.0]
    """
    more = count + 1
    low = count * max(0.0, 1 - 1 / (9 * count) - Z / (3 * count**0.5)) ** 3 if count > 0 else 0.0
    return low, more * (1 - 1 / (9 * more) + Z / (3 * more**0.5)) ** 3
