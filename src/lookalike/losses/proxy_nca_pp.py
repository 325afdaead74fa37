"""Teh, DeVries, Taylor: ProxyNCA++: Revisiting and Revitalizing Proxy Neighborhood Component Analysis, ECCV 2020
[math A13b].

L = mean CE( S(e, ψ_c) / T ) over all classes, T = 0.1 (Chance Constraints). The paper's own form, softmax of −‖e −
ψ‖²/T′ with T′ = 1/9, is the cosine temperature T′/2: do not mix the two. See also: proxy_nca, normalised_softmax.
"""

from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_at_least, check_positive
from lookalike.geometry import Geometry, check_geometry, compare
from lookalike.loss_inputs import as_classes, check_dim
from lookalike.losses.learnt import at_rate_factor
from lookalike.targets import Embeddings, Logits, Targets, Value


class ProxyNCAPP(nn.Module):
    """Raises the probability of the own proxy among all proxies, by cosine at a low temperature.

    classes: the number of classes; labels run from 0 to classes − 1.
    dim: the dimension of the embeddings.
    temperature: T, which divides the similarities before the softmax.
    rate_factor: the learning rate of the proxies, as a multiple of the network's.
    normalise: where embeddings and proxies are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        classes: int,
        dim: int,
        temperature: float = 0.1,
        rate_factor: float = 100.0,
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check_at_least(1, classes=classes, dim=dim)
        check_positive(temperature=temperature)
        self.temperature, self.rate_factor, self.normalise = temperature, rate_factor, check_geometry(normalise)
        self.proxies = nn.Parameter(torch.randn(classes, dim) / 8)

    def parameter_groups(self, base_lr: float) -> list[dict[str, Any]]:
        return at_rate_factor(self, base_lr)

    def logits(self, embeddings: Embeddings) -> Logits:
        check_dim(embeddings, self.proxies)
        return compare(embeddings, self.proxies, self.normalise) / self.temperature

    def forward(self, embeddings: Embeddings, targets: Targets) -> Value:
        labels = as_classes(targets, embeddings, self.proxies)
        return cross_entropy(self.logits(embeddings), labels, reduction="sum") / max(1, len(labels))
