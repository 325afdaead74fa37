"""What the weight of a negative pair does while similarities move: the three panels of the Multi-Similarity paper.

Wang, Han, Huang, Dong, Scott: Multi-Similarity Loss with General Pair Weighting, CVPR 2019, sec. 3 and 4. One anchor
with a few positives and negatives; one of three things moves: the similarity of the negative itself, those of the
positives (P), those of the other negatives (N). The weights are `pair_weights`, that is autograd: nothing is derived
by hand. A flat panel is a loss that does not look there. (The S of table 1 asks for more: that the weight changes when
all similarities move together, so that a loss which only compares is not S-dependent.)
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike import losses
from lookalike.analysis.figures import COLOURS, panels
from lookalike.analysis.weighting import check_inside, one_anchor, one_quadruplet, pair_weights
from lookalike.errors import check

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POSITIVES = (0.57, 0.6, 0.63)
NEGATIVE = 0.6
RIVALS = (0.495, 0.515, 0.535, 0.555)  # the anchor's other negatives
FIRST, LAST, POINTS = -0.5, 31 / 32, 95  # steps of half a bin of the histogram loss
LABELS = {
    "itself": "own similarity",
    "positives": "mean similarity of the positives (P)",
    "negatives": "mean similarity of the other negatives (N)",
}


@dataclass(frozen=True)
class Curves:
    """The weight of one negative pair at every place of what moves.

    places: the similarity, or the mean of the similarities, that moves.
    itself: weights while its own similarity moves.
    positives: while those of the positives do.
    negatives: while those of the other negatives do.
    """

    places: list[float]
    itself: list[float]
    positives: list[float]
    negatives: list[float]

    def as_json(self) -> dict[str, list[float]]:
        """The four lists by name."""
        return asdict(self)


def weight_curves(loss: nn.Module, points: int = POINTS) -> Curves:
    """The weight of a negative pair at `points` places, while itself, the positives or the other negatives move.

    >>> curves = weight_curves(losses.CosineContrastive(), points=3)
    >>> curves.places, curves.itself, curves.positives
    ([-0.5, 0.234375, 0.96875], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0])
    """
    check_inside(type(loss))
    check(points >= 2, f"a curve has at least 2 points, not {points}")
    places = torch.linspace(FIRST, LAST, points, dtype=torch.float64)
    positives, rivals = (torch.tensor(values, dtype=torch.float64) for values in (POSITIVES, RIVALS))
    own = torch.tensor([NEGATIVE], dtype=torch.float64)
    moved = {
        "itself": [torch.cat([positives, place[None], rivals]) for place in places],
        "positives": [torch.cat([_to(positives, place), own, rivals]) for place in places],
        "negatives": [torch.cat([positives, own, _to(rivals, place)]) for place in places],
    }
    weights = {what: [_weight(loss, row) for row in rows] for what, rows in moved.items()}
    return Curves([round(place, 6) for place in places.tolist()], **weights)


def _to(similarities: Tensor, mean: Tensor) -> Tensor:
    return similarities - similarities.mean() + mean


def _weight(loss: nn.Module, similarities: Float[Tensor, " k"]) -> float:
    """Of the first negative, from candidates that lie on the unit circle at these cosines to the anchor."""
    anchor = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    candidates = torch.stack([similarities, (1 - similarities.square()).sqrt()], 1)
    count = len(POSITIVES)
    quadruplet = isinstance(loss, losses.Quadruplet)
    targets = one_quadruplet(count) if quadruplet else one_anchor(count, len(similarities) - count)
    weight = pair_weights(loss, anchor, targets, candidates)[0, count]
    return float(f"{float(weight):.6g}")


def draw_weight_curves(curves: Mapping[str, Curves]) -> "Figure":
    """One row of three panels per loss of `curves`, by name; each has its own scale, the same in its three panels."""
    check(len(curves) > 0, "there are no curves to draw: give at least one loss")
    caption = (
        "Weight |∂L/∂S| of one negative pair while one thing moves, from autograd. Where a line is flat, the loss does "
        "not look there. Dotted: where things stand while another panel's thing moves."
    )
    size = (8.2, 0.9 + 1.15 * len(curves))
    figure, axes = panels(len(curves), 3, size, caption, sharex="col", sharey="row")
    standing = {"itself": NEGATIVE, "positives": sum(POSITIVES) / 3, "negatives": sum(RIVALS) / 4}
    for number, (name, curve) in enumerate(curves.items()):
        for place, what in enumerate(LABELS):
            _panel(axes[number, place], curve, what, COLOURS[place], standing[what])
        axes[number, 0].set_ylabel(f"{name}\nweight", fontsize=7)
        axes[number, 0].set_ylim(bottom=0)  # after all three are drawn: it fixes the top too
    for place, label in enumerate(LABELS.values()):
        axes[-1, place].set_xlabel(label)
    return figure


def _panel(axes: Any, curve: Curves, what: str, colour: str, standing: float) -> None:
    axes.axvline(standing, color="#999", linewidth=0.7, linestyle=":")
    axes.plot(curve.places, getattr(curve, what), color=colour, linewidth=1.5)
    axes.tick_params(labelsize=7)
