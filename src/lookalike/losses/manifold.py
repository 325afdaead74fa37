"""Aziere, Todorovic: Ensemble Deep Manifold Similarity Learning Using Hard Proxies, CVPR 2019 [math A24o].

A walk over embeddings and proxies, A_ij = e^{[cos θ_ij]_+ / ½} with A_ii = 0, restarts with chance 1 − α: its ranks are
F = (1 − α)(I − α D^−½ A D^−½)^−1. With f = F (intrinsic) and f = the cosine of two rows of F (context),
l_i = log(1 + Σ e^{f_ik − f_iy + γ}) over the hard proxies, those k ≠ y with f_ik − f_iy + γ ≥ 0; L = mean of the
intrinsic l + λ · mean of the context l.

Departs from the paper: one network instead of an ensemble of them. Classes are dealt at random to the proxies, as for
one of its members; with as many proxies as classes, each has its own. See also: proxy_anchor.
"""

from typing import Any

import torch
from torch import Tensor, nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check, check_at_least
from lookalike.geometry import Geometry, check_geometry, compare, normalise
from lookalike.loss_inputs import as_classes, taint
from lookalike.losses.learnt import at_rate_factor
from lookalike.targets import Embeddings, Targets, Value

HALF_WIDTH = 0.5  # the width of the affinity
LARGEST = 40.0  # raw products end here: the exponential of twice this is still a number in float32


class Manifold(nn.Module):
    """Compares samples with proxies along the manifold of the batch, by where a random walk between them arrives.

    classes: the number of classes; labels run from 0 to classes − 1.
    dim: the dimension of the embeddings.
    proxies: K, the number of proxies, to which the classes are dealt; at most one per class.
    context_weight: λ, the weight of comparing whole rows of ranks.
    alpha: α, the chance that the walk goes on.
    offset: γ, by which the own proxy must rank higher than another.
    rate_factor: the learning rate of the proxies, as a multiple of the network's.
    normalise: where embeddings and proxies are compared: "sphere", "ball" or "none".
    """

    metaclass: Tensor

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        classes: int,
        dim: int,
        proxies: int = 50,
        context_weight: float = 1.0,
        alpha: float = 0.8,
        offset: float = 5e-4,
        rate_factor: float = 100.0,
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check_at_least(1, classes=classes, dim=dim, proxies=proxies)
        check_at_least(0, context_weight=context_weight)
        check(0 < alpha < 1, f"alpha is a probability between 0 and 1, not {alpha}")
        self.context_weight, self.alpha, self.offset, self.rate_factor = context_weight, alpha, offset, rate_factor
        self.normalise = check_geometry(normalise)
        dealt = torch.arange(classes) if proxies >= classes else torch.randperm(classes) % proxies
        self.register_buffer("metaclass", dealt)
        self.proxies = nn.Parameter(torch.randn(min(proxies, classes), dim))

    def parameter_groups(self, base_lr: float) -> list[dict[str, Any]]:
        return at_rate_factor(self, base_lr)

    def forward(self, embeddings: Embeddings, targets: Targets) -> Value:
        own = self.metaclass[as_classes(targets, embeddings, self.proxies[self.metaclass])]
        rows, proxies = normalise(embeddings, self.normalise), normalise(self.proxies, self.normalise)
        nodes = torch.cat([rows, proxies.to(rows.dtype)])
        ranks = self._walk(compare(nodes, None, "none" if self.normalise == "none" else None))
        of_samples, of_proxies = ranks[: len(rows)], ranks[len(rows) :]
        intrinsic = self._hard(of_samples[:, len(rows) :], own)
        context = compare(of_samples, of_proxies, "sphere")
        return intrinsic + self.context_weight * self._hard(context, own) + taint(embeddings)

    def _walk(self, similarities: Tensor) -> Tensor:
        """F of all nodes."""
        affinities = (similarities.clamp(0, LARGEST) / HALF_WIDTH).exp()
        affinities = affinities - affinities.diagonal().diag()
        degrees = affinities.sum(1)
        root = torch.where(degrees > 0, degrees, 1.0).rsqrt()
        steps = root[:, None] * affinities * root
        here = torch.eye(len(steps), dtype=steps.dtype, device=steps.device)
        ranks: Tensor = (1 - self.alpha) * torch.linalg.inv_ex(here - self.alpha * steps).inverse
        return ranks

    def _hard(self, ranks: Tensor, own: Tensor) -> Tensor:
        """The mean over samples of log(1 + Σ over hard proxies of e^{f_k − f_y + γ})."""
        excess = ranks - ranks.gather(1, own[:, None]) + self.offset
        others = torch.ones_like(excess, dtype=torch.bool).scatter(1, own[:, None], False)
        hard = torch.where(others & ~(excess < 0), excess.exp(), 0.0)
        return hard.sum(1).log1p().sum() / max(1, len(own))
