"""Same class or not? Distributions of similarity, the threshold for a target precision, PR and ROC over pairs."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookalike.evaluation import Tally, pair_curves
from lookalike.evaluation.inputs import Codes
from lookalike.geometry import Geometry
from lookalike.report.charts.chart import Axis, Chart, ReferenceLine, Series

BINS = 60
POINTS = 200
TARGETS = (0.5, 0.8, 0.9, 0.95, 0.99)
TARGET = 0.9  # the one that is marked
Values = NDArray[np.float64]


class Threshold(NamedTuple):
    """The lowest similarity whose accepted pairs are right this often, and what share of same-class pairs it finds."""

    target: float
    threshold: float
    precision: float
    recall: float


def score_name(geometry: Geometry) -> str:
    return "cosine similarity" if geometry == "sphere" else "similarity (−½ squared distance)"


def thresholds(tally: Tally) -> list[Threshold]:
    """For every target precision that some threshold reaches."""
    rows = []
    for target in TARGETS:
        places = np.flatnonzero(tally.precision >= target)
        if len(places):
            columns = (tally.threshold, tally.precision, tally.recall)
            rows.append(Threshold(target, *(float(column[places[-1]]) for column in columns)))
    return rows


def similarity_chart(tally: Tally, geometry: Geometry) -> Chart:
    edges = bins(tally)
    same, other = (shares(tally, counts, edges) for counts in (tally.same, tally.other))
    middles = tuple(((edges[:-1] + edges[1:]) / 2).tolist())
    table = thresholds(tally)
    marked = [row for row in table if row.target == TARGET]
    reading = "no threshold makes 9 of 10 pairs right"
    if marked:
        reading = (
            f"right of the line 9 of 10 pairs are of one class, which finds {share(marked[0].recall)} of all such pairs"
        )
    return Chart(
        "similarity",
        "Similarity of pairs",
        f"The less the two overlap, the better; {reading}.",
        Axis(score_name(geometry), float(edges[0]), float(edges[-1])),
        Axis("share of pairs of each kind", 0.0, 1.08 * float(max(same.max(), other.max()))),
        (
            Series("same class", middles, tuple(same.tolist()), "area", 0),
            Series("different classes", middles, tuple(other.tolist()), "area", 1),
        ),
        tuple(ReferenceLine(row.threshold, f"precision {row.target:.2f}") for row in marked),
        {"thresholds": [row._asdict() for row in table]},
    )


def share(value: float) -> str:
    """A share with enough decimals to see that it is not 0.

    >>> share(0.5), share(0.0004), share(0.0)
    ('0.500', '0.0004', '0.000')
    """
    return f"{value:.{3 if value >= 0.001 or not value else min(8, -math.floor(math.log10(value)))}f}"


def bins(tally: Tally) -> Values:
    """Edges of equal bins around all scores, in whole steps of the tally's own: else some would hold one step more."""
    low, high = float(tally.threshold[-1]), float(tally.threshold[0])
    step = 2.0 / pair_curves.BINS
    if high - low < BINS * step:
        return np.linspace(low, high + max(1e-6, (high - low) / BINS), BINS + 1)
    width = np.ceil((high - low) / step / BINS) * step
    first = np.floor(low / step) * step
    # slightly below the steps, so that rounding does not move a score to the bin before
    edges: Values = first + width * np.arange(np.floor((high - first) / width) + 2) - 1e-9
    return edges


def shares(tally: Tally, counts: Values, edges: Values) -> Values:
    """The share of pairs in each bin, from the number above each threshold (thresholds fall)."""
    above = np.searchsorted(-tally.threshold, -edges, side="right")
    parts: Values = -np.diff(np.r_[0.0, counts][above]) / counts[-1]
    return parts


def precision_recall_chart(tally: Tally) -> Chart:
    places = evenly(tally.recall)
    area = pair_curves.pr_area(tally)
    return Chart(
        "precision_recall",
        "Precision and recall of pairs",
        f"Nearer to the top right corner is better; area {area:.3f}, by chance {tally.precision[-1]:.4f}.",
        Axis("recall (share of same-class pairs)", 0.0, 1.0),
        Axis("precision (share of accepted pairs)", 0.0, 1.0),
        (Series("all thresholds", _at(tally.recall, places), _at(tally.precision, places)),),
        extra={"area": area, "threshold": _at(tally.threshold, places)},
    )


def roc_chart(tally: Tally) -> Chart:
    positive = np.flatnonzero(tally.far > 0)
    places = evenly(np.log10(tally.far[positive]))
    area = pair_curves.roc_area(tally)
    rates, recall = tally.far[positive], tally.recall[positive]
    low = 10.0 ** np.floor(np.log10(rates[0])) if len(rates) and rates[0] < 0.5 else 0.1
    return Chart(
        "roc",
        "ROC of pairs",
        f"Higher on the left is better: more hits with few false alarms; area {area:.4f}.",
        Axis("false-accept rate", max(float(low), 1e-7), 1.0, log=True),
        Axis("true-accept rate", 0.0, 1.0),
        (Series("all thresholds", _at(np.maximum(rates, 1e-7), places), _at(recall, places)),),
        extra={"area": area, "threshold": _at(tally.threshold[positive], places)},
    )


def evenly(values: Values) -> Codes:
    """Places of points that lie evenly along a rising axis: both ends, and none twice."""
    near = np.searchsorted(values, np.linspace(values[0], values[-1], POINTS), side="left")
    places: Codes = np.unique(np.r_[0, np.minimum(near, len(values) - 1), len(values) - 1])
    return places


def _at(values: Values, places: Codes) -> tuple[float, ...]:
    return tuple(values[places].tolist())
