"""Movshovitz-Attias, Toshev, Leung, Ioffe, Singh: No Fuss Distance Metric Learning using Proxies, ICCV 2017;
Revisiting, eq. 13 [math A13a].

L = mean [ 9‖e − ψ_y‖² + lse_{c ≠ y}( −9‖e − ψ_c‖² ) ]: the own proxy is not in the denominator, the loss may be
negative.

Departs from the paper: squared distances of vectors scaled to length 3, as the released code, where eq. 13 prints plain
distances [math ERR-14]. See also: proxy_nca_pp.
"""

from typing import Any

import torch
from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_at_least, check_positive
from lookalike.geometry import Geometry, check_geometry, compare_with_squares, squared_distances
from lookalike.loss_inputs import as_classes, check_dim
from lookalike.losses.learnt import at_rate_factor
from lookalike.targets import Embeddings, Logits, Targets, Value


class ProxyNCA(nn.Module):
    """Draws a sample to the proxy of its class and away from the soft nearest proxy of any other.

    classes: the number of classes; labels run from 0 to classes − 1.
    dim: the dimension of the embeddings.
    scale: the length that embeddings and proxies are scaled to.
    rate_factor: the learning rate of the proxies, as a multiple of the network's.
    normalise: where embeddings and proxies are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self, classes: int, dim: int, scale: float = 3.0, rate_factor: float = 50.0, normalise: Geometry = "sphere"
    ) -> None:
        super().__init__()
        check_at_least(1, classes=classes, dim=dim)
        check_positive(scale=scale)
        self.scale, self.rate_factor, self.normalise = scale, rate_factor, check_geometry(normalise)
        self.proxies = nn.Parameter(torch.randn(classes, dim) / 8)

    def parameter_groups(self, base_lr: float) -> list[dict[str, Any]]:
        return at_rate_factor(self, base_lr)

    def logits(self, embeddings: Embeddings) -> Logits:
        check_dim(embeddings, self.proxies)
        return -(self.scale**2) * squared_distances(*compare_with_squares(embeddings, self.proxies, self.normalise))

    def forward(self, embeddings: Embeddings, targets: Targets) -> Value:
        labels = as_classes(targets, embeddings, self.proxies)
        logits = self.logits(embeddings)
        if len(self.proxies) == 1:
            return 0.0 * logits.sum()
        own = logits.gather(1, labels[:, None]).squeeze(1)
        others = logits.scatter(1, labels[:, None], -torch.inf).logsumexp(1)
        return (others - own).sum() / max(1, len(labels))
