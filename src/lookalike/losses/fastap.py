"""Cakir, He, Xia, Kulis, Sclaroff: Deep Metric Learning to Rank (FastAP), CVPR 2019, eq. 11 and supplement eq. 17
[math A16].

z = d² ∈ [0, 4] is shared linearly by the B + 1 centres of B bins; h+ and h are its histograms over positives and over
all others, H+ and H their running sums; FastAP_i = (1/|P|) Σ_l h+_l H+_l / H_l, L = 1 − mean over anchors with a
positive. Released gradients are M/2 times too large [math ERR-20]; these are not. See also: smooth_ap, histogram.
"""

import torch
from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check
from lookalike.geometry import Geometry, check_geometry
from lookalike.loss_inputs import value_of_pairs
from lookalike.losses.soft_histogram import soft_histogram
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value

PRESETS = {"cub": {"bins": 17}, "cars": {"bins": 27}, "sop": {"bins": 16}}


class FastAP(nn.Module):
    """Raises the average precision of every anchor's ranking, counted in bins of squared distance.

    bins: B, the number of bins between the squared distances 0 and 4.
    normalise: must be "sphere": the bins cover squared distances between unit vectors.
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(self, bins: int = 10, normalise: Geometry = "sphere") -> None:
        super().__init__()
        check(bins >= 1, f"FastAP needs at least 1 bin, not {bins}")
        check(normalise == "sphere", f"the bins cover distances on the sphere: normalise cannot be {normalise!r}")
        self.bins, self.normalise = bins, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        positions = (1 - similarities) * (self.bins / 2)
        near = soft_histogram(positions, pairs.positive, self.bins + 1)
        far = soft_histogram(positions, pairs.negative, self.bins + 1)
        near_so_far = near.cumsum(1)
        so_far = near_so_far + far.cumsum(1)
        empty = so_far <= 0
        precisions = torch.where(empty, 0.0, near_so_far / torch.where(empty, 1.0, so_far))
        positives = pairs.positive.sum(1)
        average = (near * precisions).sum(1) / positives.clamp(min=1)
        anchors = positives > 0
        return torch.where(anchors, 1 - average, 0.0).sum() / anchors.sum().clamp(min=1)
