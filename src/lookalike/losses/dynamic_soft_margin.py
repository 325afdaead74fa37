"""Zhang, Rusinkiewicz: Learning Local Descriptors with a CDF-Based Dynamic Soft Margin, ICCV 2019 [math A24m].

x = d_p − min(hardest negative of either end) of every positive pair; L = mean of F(x) · x, F the cumulative
distribution of x, as a constant: the harder a pair is among all pairs, the more it counts, and there is no margin to
choose. With candidates, the negatives of column j are the rows it is negative to.

Departs from the paper: F is that of the batch, where the paper keeps a running mean of histograms: a loss leaves
nothing behind. See also: triplet, histogram.
"""

import torch
from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check
from lookalike.geometry import Geometry, Squares, check_geometry, distances
from lookalike.loss_inputs import value_of_distances
from lookalike.losses.soft_histogram import soft_histogram
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value

WIDEST = 2.0  # the largest difference of two distances on the sphere


class DynamicSoftMargin(nn.Module):
    """Compares every positive pair with its hardest negative and weighs it by how many pairs are easier.

    nodes: the number of nodes of the histogram of differences between −2 and 2.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(self, nodes: int = 512, normalise: Geometry = "sphere") -> None:
        super().__init__()
        check(nodes >= 2, f"a histogram needs at least 2 nodes, not {nodes}")
        self.nodes, self.normalise = nodes, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_distances(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs, lengths: Squares = None) -> Value:
        apart = distances(similarities, lengths)
        if not apart.numel():
            return apart.sum()
        repelled = torch.where(pairs.negative, apart, torch.inf)
        hardest = torch.minimum(repelled.amin(1)[:, None], repelled.amin(0))
        counted = pairs.positive & (hardest < torch.inf)
        excess = torch.where(counted, apart - torch.where(counted, hardest, 0.0), 0.0)

        # the share of easier pairs, at the node below x
        positions = (excess.detach().clamp(-WIDEST, WIDEST) + WIDEST) * ((self.nodes - 1) / (2 * WIDEST))
        counts = soft_histogram(positions, counted, self.nodes).sum(0)
        total = counts.sum().clamp(min=1)
        easier = (counts.cumsum(0) / total)[positions.floor().to(torch.int64).clamp(0, self.nodes - 1)]
        return (easier * excess).sum() / total
