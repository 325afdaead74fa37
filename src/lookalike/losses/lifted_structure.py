"""Oh Song, Xiang, Jegelka, Savarese: Deep Metric Learning via Lifted Structured Feature Embedding, CVPR 2016, eq. 4
[math A3a].

J_ij = log( Σ_{k ∈ N_i} e^{α − d_ik} + Σ_{l ∈ N_j} e^{α − d_jl} ) + d_ij,  L = (1 / 2|P|) Σ over positive pairs of
[J_ij]_+². With candidates, the negatives of column j are the rows it is negative to. See also: generalised_lifted,
lifted_star.
"""

import torch
from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_at_least
from lookalike.geometry import Geometry, Squares, check_geometry, distances
from lookalike.loss_inputs import value_of_distances
from lookalike.reductions import log_sum_exp
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value

NOWHERE = -1e30  # stands for log 0 where its gradient must stay finite


class LiftedStructure(nn.Module):
    """Pushes the nearest negatives of both ends of every positive pair farther away than the pair is long.

    margin: α, by which the negatives must be farther away than the pair is long.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(self, margin: float = 1.0, normalise: Geometry = "sphere") -> None:
        super().__init__()
        check_at_least(0, margin=margin)
        self.margin, self.normalise = margin, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_distances(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs, lengths: Squares = None) -> Value:
        apart = distances(similarities, lengths)
        closeness = self.margin - apart
        of_rows, of_columns = log_sum_exp(closeness, pairs.negative), log_sum_exp(closeness.T, pairs.negative.T)
        rows, columns = of_rows > -torch.inf, of_columns > -torch.inf
        of_rows, of_columns = torch.where(rows, of_rows, NOWHERE), torch.where(columns, of_columns, NOWHERE)
        hinges = (torch.logaddexp(of_rows[:, None], of_columns) + apart).relu()
        # a positive pair without any negative at either end has no term
        mask = pairs.positive & (rows[:, None] | columns)
        return 0.5 * torch.where(mask, hinges, 0.0).square().sum() / pairs.positive.sum().clamp(min=1)
