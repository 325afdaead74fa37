"""Own variant of hierarchical proxies (HPL-PA, named in Deep Metric Learning with Chance Constraints, supplement,
table 1) [math A18].

L = PA(e, y; fine proxies) + ω · PA(e, cluster(y); coarse proxies), PA the Proxy Anchor equation. The coarse proxies
start as the centroids of the fine ones (cosine k-means, K = max(2, √C)) and are then free parameters, until the next
clustering.

Departs from the paper: it gives numbers but no definition; this reading is ours. Until the first clustering
(`epoch_started` with epoch ≥ 1, after the warm-up epoch) only the fine level acts. See also: proxy_anchor.
"""

from typing import Any

import torch
from torch import Tensor, nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.cluster import k_means
from lookalike.errors import check, check_at_least
from lookalike.geometry import Geometry, check_geometry, compare, normalise
from lookalike.loss_inputs import as_classes, check_dim
from lookalike.losses.learnt import at_rate_factor
from lookalike.reductions import log_sum_exp, mean_where, softplus
from lookalike.targets import Embeddings, Logits, Targets, Value


class HierarchicalProxy(nn.Module):
    """Gathers samples around the proxy of their class, and classes around the proxy of their cluster.

    classes: the number of classes; labels run from 0 to classes − 1.
    dim: the dimension of the embeddings.
    alpha: α, the scale of Proxy Anchor: how much the hardest samples of a proxy outweigh the others.
    delta: δ, the margin of Proxy Anchor.
    coarse: K, the number of coarse proxies; None: max(2, √classes).
    coarse_weight: ω, the weight of the coarse level; the fine level has weight 1.
    every: the number of epochs from one clustering to the next.
    rate_factor: the learning rate of the proxies, as a multiple of the network's.
    normalise: where embeddings and proxies are compared: "sphere", "ball" or "none".
    """

    cluster: Tensor
    clustered: Tensor

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        classes: int,
        dim: int,
        alpha: float = 32.0,
        delta: float = 0.1,
        coarse: int | None = None,
        coarse_weight: float = 0.1,
        every: int = 1,
        rate_factor: float = 100.0,
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check_at_least(1, classes=classes, dim=dim)
        check(every >= 1, f"every must be at least 1 epoch, not {every}")
        count = min(classes, max(2, round(classes**0.5))) if coarse is None else coarse
        check(1 <= count <= classes, f"coarse proxies must number 1 to {classes}, not {count}")
        self.alpha, self.delta, self.coarse_weight = alpha, delta, coarse_weight
        self.every, self.rate_factor, self.normalise = every, rate_factor, check_geometry(normalise)
        self.proxies = nn.Parameter(nn.init.kaiming_normal_(torch.empty(classes, dim), mode="fan_out"))
        self.coarse_proxies = nn.Parameter(torch.zeros(count, dim))
        self.register_buffer("cluster", torch.zeros(classes, dtype=torch.int64))
        self.register_buffer("clustered", torch.zeros((), dtype=torch.bool))

    def parameter_groups(self, base_lr: float) -> list[dict[str, Any]]:
        return at_rate_factor(self, base_lr)

    @torch.no_grad()
    def epoch_started(self, epoch: int, generator: torch.Generator | None = None) -> None:
        """Clusters the classes anew after the warm-up epoch 0 and then every few epochs."""
        if epoch < 1 or (epoch - 1) % self.every:
            return
        seed = int(torch.randint(2**31, (), generator=generator))
        clusters = k_means(normalise(self.proxies, "sphere"), len(self.coarse_proxies), seed=seed, backend="torch")
        self.coarse_proxies.copy_(normalise(clusters.centres, "sphere"))
        self.cluster.copy_(clusters.assignment)
        self.clustered.fill_(True)

    def logits(self, embeddings: Embeddings) -> Logits:
        check_dim(embeddings, self.proxies)
        return self.alpha * compare(embeddings, self.proxies, self.normalise)

    def forward(self, embeddings: Embeddings, targets: Targets) -> Value:
        labels = as_classes(targets, embeddings, self.proxies)
        fine = self._level(embeddings, self.proxies, labels)
        coarse = self._level(embeddings, self.coarse_proxies, self.cluster[labels])
        return fine + self.coarse_weight * torch.where(self.clustered, coarse, 0.0)

    def _level(self, embeddings: Tensor, proxies: Tensor, labels: Tensor) -> Tensor:
        """Proxy Anchor, eq. 4, over the proxies of one level."""
        own = torch.arange(len(proxies), device=labels.device)[:, None] == labels
        similarities = compare(proxies, embeddings, self.normalise)
        pull = log_sum_exp(similarities, own, -self.alpha) + self.alpha * self.delta
        push = log_sum_exp(similarities, ~own, self.alpha) + self.alpha * self.delta
        return mean_where(softplus(pull), pull != -torch.inf) + softplus(push).mean()
