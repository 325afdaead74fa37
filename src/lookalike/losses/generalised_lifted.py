"""Hermans, Beyer, Leibe: In Defense of the Triplet Loss, 2017; Revisiting Training Strategies, eq. 3 [math A3b, A3c].

L = mean over anchors of [ lse_P d + lse_N (γ − d) ]_+ + ν · mean ‖z‖; with similarity="cosine" Multi-Similarity, eq. 6:
L = Σ_i [ lse_P (γ − S) + lse_N S ]_+.

Departs from the paper: mean instead of sum over anchors and the norm not squared, as the released code [math ERR-3];
settings `reduction` and `norm_squared` give the printed form. See also: lifted_structure, lifted_star.
"""

from typing import Literal

import torch
from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check, check_at_least
from lookalike.geometry import Geometry, Squares, check_geometry, compare_with_squares, distances, mean_norm
from lookalike.loss_inputs import as_pairs, taint
from lookalike.reductions import log_sum_exp
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value


class GeneralisedLifted(nn.Module):
    """Compares the farthest positive with the nearest negative of every anchor, both softened to log-sum-exp.

    margin: γ, by which the nearest negative must be farther than the farthest positive (λ of the cosine form).
    norm_weight: ν, the weight of the mean length of the raw embeddings; Euclidean form only.
    norm_squared: whether that length is squared.
    reduction: "mean" or "sum" over anchors; None: mean for Euclidean, sum for cosine, as their equations.
    similarity: "euclidean" distances, or "cosine" for the form of Multi-Similarity.
    normalise: "sphere", "ball" or "none"; None: raw vectors for Euclidean, the sphere for cosine.
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        margin: float = 1.0,
        norm_weight: float = 0.005,
        norm_squared: bool = False,
        reduction: Literal["mean", "sum"] | None = None,
        similarity: Literal["euclidean", "cosine"] = "euclidean",
        normalise: Geometry | None = None,
    ) -> None:
        super().__init__()
        check(similarity in ("euclidean", "cosine"), f"similarity must be 'euclidean' or 'cosine', not {similarity!r}")
        check(reduction in (None, "mean", "sum"), f"reduction must be 'mean' or 'sum', not {reduction!r}")
        check_at_least(0, norm_weight=norm_weight)
        euclidean = similarity == "euclidean"
        self.margin, self.similarity = margin, similarity
        self.norm_weight, self.norm_squared = norm_weight if euclidean else 0.0, norm_squared
        self.reduction = reduction or ("mean" if euclidean else "sum")
        self.normalise = check_geometry(normalise or ("none" if euclidean else "sphere"))

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        pairs = as_pairs(targets, embeddings, candidates)
        similarities, lengths = compare_with_squares(embeddings, candidates, self.normalise)
        value = self.of_similarities(similarities, pairs, lengths)
        norm = self.norm_weight * mean_norm(embeddings, self.norm_squared)
        return value + norm + taint(embeddings, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs, lengths: Squares = None) -> Value:
        """The hinges alone; the norm of raw vectors is added in `forward`."""
        closeness = similarities if self.similarity == "cosine" else distances(similarities, lengths)
        sign = 1.0 if self.similarity == "cosine" else -1.0
        # γ is the same for all pairs; −∞ where an anchor lacks one of the two sets: no hinge
        excess = (
            log_sum_exp(closeness, pairs.positive, -sign) + log_sum_exp(closeness, pairs.negative, sign) + self.margin
        )
        total = excess.relu().sum()
        return total if self.reduction == "sum" else total / (excess > -torch.inf).sum().clamp(min=1)
