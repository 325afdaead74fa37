"""Ustinova, Lempitsky: Learning Deep Embeddings with Histogram Loss, NeurIPS 2016; Revisiting, eq. 7-9 [math A7].

Nodes t_r = −1 + (r − 1)Δ, Δ = 2/(R − 1); h+ and h− are the histograms of positive and negative similarities, every pair
shared linearly by its two nodes; L = Σ_r h−_r Σ_{q ≤ r} h+_q, the chance that a negative pair is more similar than a
positive one.

Departs from the paper: the second indicator of eq. 7 is [t_r, t_{r+1}] [math ERR-8]; the released code looks bins up by
comparing floats and loses half of the mass at R = 11, this one does not. Ordered pairs count both ways: the same
means.
"""

from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check
from lookalike.geometry import Geometry, check_geometry
from lookalike.loss_inputs import value_of_pairs
from lookalike.losses.soft_histogram import soft_histogram
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value

PRESETS = {"cub": {"nodes": 65}, "cars": {"nodes": 65}, "sop": {"nodes": 11}}


class Histogram(nn.Module):
    """Separates the similarity distribution of positive pairs from that of negative pairs, with no margin to choose.

    nodes: R, the number of nodes between similarities −1 and 1.
    normalise: where embeddings are compared: "sphere" or "ball".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(self, nodes: int = 65, normalise: Geometry = "sphere") -> None:
        super().__init__()
        check(nodes >= 2, f"a histogram needs at least 2 nodes, not {nodes}")
        check(normalise != "none", "the nodes cover similarities in [−1, 1]: normalise must be 'sphere' or 'ball'")
        self.nodes, self.normalise = nodes, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        positions = (similarities + 1) * ((self.nodes - 1) / 2)
        positive = soft_histogram(positions, pairs.positive, self.nodes).sum(0) / pairs.positive.sum().clamp(min=1)
        negative = soft_histogram(positions, pairs.negative, self.nodes).sum(0) / pairs.negative.sum().clamp(min=1)
        return (negative * positive.cumsum(0)).sum()
