"""Kim, Kim, Cho, Kwak: Proxy Anchor Loss for Deep Metric Learning, CVPR 2020, eq. 4 [math A13c].

L = (1/|Ψ+|) Σ_{ψ with positives} log(1 + Σ_{x ∈ X+} e^{−α(S − δ)}) + (1/C) Σ_ψ log(1 + Σ_{x ∈ X−} e^{α(S + δ)}).
See also: hierarchical_proxy, multi_similarity (the same weights with samples as anchors).
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_at_least, check_positive
from lookalike.geometry import Geometry, check_geometry, compare
from lookalike.loss_inputs import as_classes, check_dim, taint
from lookalike.losses.learnt import at_rate_factor
from lookalike.reductions import log_sum_exp, mean_where, softplus
from lookalike.targets import Embeddings, Logits, Targets, Value


class ProxyAnchor(nn.Module):
    """Takes every proxy as an anchor that gathers its class's samples and repels the rest, hardest first.

    classes: the number of classes; labels run from 0 to classes − 1.
    dim: the dimension of the embeddings.
    alpha: α, the scale: how much the hardest samples of a proxy outweigh the others.
    delta: δ, the margin: own samples should be more similar than δ, others less similar than −δ.
    rate_factor: the learning rate of the proxies, as a multiple of the network's.
    normalise: where embeddings and proxies are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        classes: int,
        dim: int,
        alpha: float = 32.0,
        delta: float = 0.1,
        rate_factor: float = 100.0,
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check_at_least(1, classes=classes, dim=dim)
        check_positive(alpha=alpha)
        self.alpha, self.delta, self.rate_factor = alpha, delta, rate_factor
        self.normalise = check_geometry(normalise)
        self.proxies = nn.Parameter(nn.init.kaiming_normal_(torch.empty(classes, dim), mode="fan_out"))

    def parameter_groups(self, base_lr: float) -> list[dict[str, Any]]:
        return at_rate_factor(self, base_lr)

    def logits(self, embeddings: Embeddings) -> Logits:
        check_dim(embeddings, self.proxies)
        return self.alpha * compare(embeddings, self.proxies, self.normalise)

    def forward(self, embeddings: Embeddings, targets: Targets) -> Value:
        labels = as_classes(targets, embeddings, self.proxies)
        own = torch.arange(len(self.proxies), device=labels.device)[:, None] == labels
        return self.of_proxies(compare(self.proxies, embeddings, self.normalise), own) + taint(embeddings)

    def of_proxies(self, similarities: Float[Tensor, "c n"], own: Bool[Tensor, "c n"]) -> Value:
        """The equation, for proxies × samples and the mask of each proxy's `own` samples."""
        pull = log_sum_exp(similarities, own, -self.alpha) + self.alpha * self.delta
        push = log_sum_exp(similarities, ~own, self.alpha) + self.alpha * self.delta
        # −∞ where a proxy has no sample in the batch: it does not count
        return mean_where(softplus(pull), pull != -torch.inf) + softplus(push).mean()
