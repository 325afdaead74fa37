"""Bardes, Ponce, LeCun: VICReg: Variance-Invariance-Covariance Regularization for Self-Supervised Learning, ICLR 2022
[math A24p].

L = λ · mean over positive pairs of ‖z − z′‖²/d + Σ_Z { μ/2 · mean_j [1 − √(C_jj + ε)]_+ + ν/d · Σ_{i ≠ j} C_ij² }, Z
the rows and the columns, C their covariance.

Two views are embeddings and candidates with Pairs.across(ids, ids), or one batch in which the views of an image share a
label: then rows and columns are the same set. Negatives only say that a column takes part.

Departs from the paper: the distance is divided by d and the variance term averaged over both views, as in the released
code, to which λ, μ and ν belong.
"""

import torch
from torch import Tensor, nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_at_least, check_positive
from lookalike.geometry import (
    SATURATION,
    Geometry,
    check_geometry,
    compare,
    compare_with_squares,
    normalise,
    squared_distances,
)
from lookalike.loss_inputs import as_pairs, taint
from lookalike.reductions import mean_where
from lookalike.targets import Candidates, Embeddings, Targets, Value


class VICReg(nn.Module):
    """Draws views together while every coordinate keeps its spread and no two coordinates say the same.

    invariance: λ, the weight of the distance between two views.
    variance: μ, the weight of coordinates that vary less than 1.
    covariance: ν, the weight of coordinates that vary together.
    epsilon: ε, added to the variance, which keeps its root smooth.
    normalise: where embeddings live: "none" as in the paper, "sphere" or "ball".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        invariance: float = 25.0,
        variance: float = 25.0,
        covariance: float = 1.0,
        epsilon: float = 1e-4,
        normalise: Geometry = "none",
    ) -> None:
        super().__init__()
        check_at_least(0, invariance=invariance, variance=variance, covariance=covariance)
        check_positive(epsilon=epsilon)
        self.invariance, self.variance, self.covariance, self.epsilon = invariance, variance, covariance, epsilon
        self.normalise = check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        pairs = as_pairs(targets, embeddings, candidates)
        rows = normalise(embeddings, self.normalise)
        columns = None if candidates is None else normalise(candidates, self.normalise)
        apart = squared_distances(*compare_with_squares(rows, columns, "none"))
        value = self.invariance * mean_where(apart, pairs.positive) / max(1, rows.shape[1])
        everyone, present = torch.ones_like(rows[:, 0]), (pairs.positive | pairs.negative).any(0).to(rows.dtype)
        value = value + self._spread(rows, everyone) + self._spread(rows if columns is None else columns, present)
        return value + taint(embeddings, candidates)

    def _spread(self, vectors: Tensor, weights: Tensor) -> Tensor:
        """μ times half the lack of variance plus ν times the covariance, over the vectors of weight 1 (others: 0)."""
        if not len(vectors):
            return vectors.sum()
        count, weights = weights.sum(), weights[:, None]
        centred = weights * (vectors - (weights * vectors).sum(0) / count.clamp(min=1))
        products = compare(centred.T.contiguous(), None, "none") / (count - 1).clamp(min=1)
        variances = products.diagonal()
        lack = (1 - (variances + self.epsilon).sqrt()).relu().mean()
        # squares of raw products saturate as the products do
        off = (products - variances.diag()).clamp(-(SATURATION**0.5), SATURATION**0.5)
        terms = 0.5 * self.variance * lack + self.covariance * off.square().sum() / max(1, len(products))
        return torch.where(count > 1, terms, 0.0)
