"""Zhai, Mustafa, Kolesnikov, Beyer: Sigmoid Loss for Language Image Pre-Training, ICCV 2023 [math A24d].

L = (1/n) Σ over pairs of log(1 + e^{−y (t S + b)}), y = 1 for a positive and −1 for a negative pair; t = e^{t′} and b
learnable. Two modalities are embeddings and candidates; their pairs are Pairs.across(ids, ids). See also:
binomial_deviance (fixed scales, means), info_nce (a softmax over the row).
"""

import math
from typing import Any

import torch
from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_positive
from lookalike.geometry import Geometry, check_geometry
from lookalike.loss_inputs import value_of_pairs
from lookalike.losses.learnt import at_rate_factor
from lookalike.reductions import softplus
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value


class SigLIP(nn.Module):
    """Asks of every pair on its own whether it belongs together, with a learnt slope and threshold of similarity.

    scale: t, which multiplies the similarities, at the start; its logarithm is learnt.
    bias: b, added to them, at the start: so far below 0 that the many negatives begin as settled.
    rate_factor: the learning rate of both, as a multiple of the network's.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self, scale: float = 10.0, bias: float = -10.0, rate_factor: float = 1.0, normalise: Geometry = "sphere"
    ) -> None:
        super().__init__()
        check_positive(scale=scale)
        self.rate_factor, self.normalise = rate_factor, check_geometry(normalise)
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale)))
        self.bias = nn.Parameter(torch.tensor(float(bias)))

    def parameter_groups(self, base_lr: float) -> list[dict[str, Any]]:
        return at_rate_factor(self, base_lr)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        logits = self.log_scale.to(similarities.dtype).exp() * similarities + self.bias
        terms = softplus(torch.where(pairs.positive, -logits, logits))
        counted = pairs.positive | pairs.negative
        return torch.where(counted, terms, 0.0).sum() / max(1, len(similarities))
