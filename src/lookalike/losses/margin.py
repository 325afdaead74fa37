"""Wu, Manmatha, Smola, Krähenbühl: Sampling Matters in Deep Embedding Learning, ICCV 2017; Revisiting, eq. 10
[math A8].

l+ = [d_ap − β + γ]_+, l− = [β − d_an + γ]_+; L = (Σ l+ + Σ l−) / number of active terms + ν Σ β, β learnable.

Departs from the paper: the printed equation misses the hinge [math ERR-10]; active terms are counted one by one, where
the released code counts triplets. `reduction="separate"` averages positives and negatives apart (Chance Constraints'
code).
"""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import UserError, check, check_at_least
from lookalike.geometry import Geometry, Squares, check_geometry, distances
from lookalike.loss_inputs import check_range, value_of_distances
from lookalike.losses.learnt import at_learning_rate
from lookalike.reductions import mean_where
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Triplets, Value

PRESETS = {"roth": {"boundary": 1.2}, "roth_0.6": {"boundary": 0.6}}


class Margin(nn.Module):
    """Draws a boundary at a learnt distance around the anchor: positives inside it, negatives outside, by a margin.

    margin: γ, by which positives must lie inside the boundary and negatives outside.
    boundary: β, the distance of the boundary at the start.
    boundary_weight: ν, the weight of Σ β.
    classes: the number of classes, each with a boundary of its own; None: one boundary for all.
    learning_rate: of the boundaries.
    reduction: "active": the mean over all active terms; "separate": one mean for positives, one for negatives.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        margin: float = 0.2,
        boundary: float = 1.2,
        boundary_weight: float = 0.0,
        classes: int | None = None,
        learning_rate: float = 5e-4,
        reduction: Literal["active", "separate"] = "active",
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check_at_least(0, margin=margin)
        check(classes is None or classes >= 1, f"classes must be at least 1, not {classes}")
        check(reduction in ("active", "separate"), f"reduction must be 'active' or 'separate', not {reduction!r}")
        self.margin, self.boundary_weight, self.reduction = margin, boundary_weight, reduction
        self.classes, self.learning_rate = classes, learning_rate
        self.boundary = nn.Parameter(torch.full((classes or 1,), float(boundary)))
        self.normalise = check_geometry(normalise)

    def parameter_groups(self, base_lr: float) -> list[dict[str, Any]]:
        return at_learning_rate(self, base_lr)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_distances(self, embeddings, targets, candidates, or_triplets=True)

    def of_similarities(self, similarities: Similarities, targets: Pairs | Triplets, lengths: Squares = None) -> Value:
        apart = distances(similarities, lengths)
        if isinstance(targets, Triplets):
            near, far = apart[targets.anchor, targets.positive], apart[targets.anchor, targets.negative]
            # an anchor and its positive share their class; `labels` are the columns'
            boundary = self._boundaries(None if targets.labels is None else targets.labels[targets.positive], apart)
            positive = negative = targets.valid
        else:
            # like the triplets they stand for: nothing where the batch lacks one of the two kinds [math A21]
            both = targets.positive.any() & targets.negative.any()
            near, far, positive, negative = apart, apart, targets.positive & both, targets.negative & both
            boundary = self._boundaries(targets.labels, apart)[:, None]
        inside, outside = (near - boundary + self.margin).relu(), (boundary - far + self.margin).relu()
        positive, negative = positive & (inside > 0), negative & (outside > 0)
        if self.reduction == "separate":
            hinges = mean_where(inside, positive) + mean_where(outside, negative)
        else:
            total = torch.where(positive, inside, 0.0).sum() + torch.where(negative, outside, 0.0).sum()
            hinges = total / (positive.sum() + negative.sum()).clamp(min=1)
        return hinges + self.boundary_weight * self.boundary.sum()

    def _boundaries(self, labels: Tensor | None, apart: Tensor) -> Tensor:
        """The boundary of every anchor."""
        boundary = self.boundary.to(apart.dtype)
        if self.classes is None:
            return boundary
        if labels is None:
            raise UserError("a boundary per class needs the anchors' classes: give labels, or targets made from labels")
        check_range(labels, self.classes)
        return boundary[labels]
