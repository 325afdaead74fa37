"""Schroff, Kalenichenko, Philbin: FaceNet, CVPR 2015; Wang et al. 2014 [math A2].

Revisiting Training Strategies, eq. 2; all triplets of the batch as in Chance Constraints; cosine as Multi-Similarity,
eq. 5.

Departs from the paper: distances are not squared by default; the released code of eq. 2 squares them with the same
margin ([math ERR-2], preset "roth"). All triplets are summed exactly without materialising them. `smooth` is the soft
margin of Hermans, Beyer, Leibe (In Defense of the Triplet Loss, 2017), there with margin 0.
"""

from typing import Literal

import torch
from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check, check_at_least
from lookalike.geometry import Geometry, Squares, check_geometry, distances, squared_distances
from lookalike.loss_inputs import value_of_distances
from lookalike.losses.all_triplets import hinge_sums, softplus_sums
from lookalike.reductions import softplus
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Triplets, Value

PRESETS = {
    "roth": {"margin": 0.2, "squared": True},
    "cub": {"margin": 0.0961, "normalise": "ball"},
    "cars": {"margin": 0.1190, "normalise": "ball"},
    "inshop": {"margin": 0.0451, "normalise": "ball"},
    "sop": {"margin": 0.0451, "normalise": "ball"},
}


class Triplet(nn.Module):
    """Asks that every positive be nearer to the anchor than every negative, by a margin.

    margin: γ, by which a negative must be farther away than a positive.
    squared: whether distances are squared; Euclidean form only.
    similarity: "euclidean" distances, or "cosine" for differences of similarity.
    reduction: "mean" (over a list, or over the active of all triplets), "active" (those of a list, too), or "sum".
    smooth: log(1 + e^x) takes the place of the hinge [x]_+, so that no triplet is ever done with.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        margin: float = 0.2,
        squared: bool = False,
        similarity: Literal["euclidean", "cosine"] = "euclidean",
        reduction: Literal["mean", "active", "sum"] = "mean",
        smooth: bool = False,
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check_at_least(0, margin=margin)
        choices = ("mean", "active", "sum")
        check(reduction in choices, f"reduction must be 'mean', 'active' or 'sum', not {reduction!r}")
        check(similarity in ("euclidean", "cosine"), f"similarity must be 'euclidean' or 'cosine', not {similarity!r}")
        check(not (squared and similarity == "cosine"), "squared goes with similarity='euclidean' only")
        self.margin, self.squared, self.similarity, self.reduction = margin, squared, similarity, reduction
        self.smooth, self.normalise = smooth, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_distances(self, embeddings, targets, candidates, or_triplets=True)

    def of_similarities(self, similarities: Similarities, targets: Pairs | Triplets, lengths: Squares = None) -> Value:
        """Mean over a list of triplets, zeros included; over all triplets, the mean of the active ones. Or as asked."""
        if self.similarity == "cosine":
            apart = -similarities
        else:
            apart = (squared_distances if self.squared else distances)(similarities, lengths)
        if isinstance(targets, Triplets):
            near, far = apart[targets.anchor, targets.positive], apart[targets.anchor, targets.negative]
            gaps = near - far + self.margin
            terms = torch.where(targets.valid, softplus(gaps) if self.smooth else gaps.relu(), 0.0)
            total, active = terms.sum(), (terms if self.reduction == "active" else targets.valid).count_nonzero()
        else:
            total, active = (softplus_sums if self.smooth else hinge_sums)(apart, targets, self.margin)
        return total if self.reduction == "sum" else total / active.clamp(min=1)
