"""Gürbüz, Can, Alatan: Deep Metric Learning with Chance Constraints, WACV 2024 [math E, A20].

A sequence of proxy problems ("instances") instead of one. Proxies are embeddings of train images, learnt along with the
network; when validation no longer improves, an instance has converged: new proxies are taken from a pool of images, as
far as possible from the old ones, and the weights are pulled towards the best ones of the instance before:

    g_θ = ∂L/∂θ + λ_t (θ − θ_anchor),   L = w_proxy · base(batch, proxies) + w_pair · base(batch, batch).

Departs from the paper: the in-batch term (0.1), clipping and the augmented pool are those of the released code; unlike
there, convergence is judged by the newest validation value, not by the previous one ([math E], decisions 1 and 4).
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from lookalike.cluster import greedy_k_center
from lookalike.errors import check
from lookalike.evaluation.geometry.covering_radius import between_classes, covering_radius
from lookalike.geometry import normalise
from lookalike.runs.log import Event
from lookalike.targets import Pairs
from lookalike.training.early_stop import EarlyStop
from lookalike.training.pool import Pool

# the losses it wraps, in the form that [math A20] gives them
FORMS: Mapping[str, Mapping[str, Any]] = {
    "cosine_contrastive": {"normalise": "ball"},
    "margin_contrastive": {"normalise": "ball"},
    "multi_similarity": {"normalise": "ball", "mining_margin": None},
    "triplet": {"normalise": "ball"},
}
MEASURED = 256  # classes whose covering radius is reported
Unseen = Callable[[], tuple[Tensor, Tensor]]  # validation images embedded with the weights of the moment; their labels


@dataclass(frozen=True)
class Chance:
    """[ccp]: size L is 8 proxies from a pool of 12 (CUB, Cars) or 4 from 7 (SOP, In-shop); size S is 1 proxy.

    proxies: K, per class.
    pool: b images per class to choose them from; fewer than K: b · K; 1: drawn at random, without k-center.
    pull: λ, how strongly the weights are pulled towards the best of the instance before.
    pull_decay: λ_t = λ · decay^t.
    patience: validations without improvement, then the instance has converged.
    min_improvement: by how much a validation must exceed the best of the instance.
    proxy_weight: of the loss between batch and proxies.
    pair_weight: of the loss within the batch; 0: it is not computed.
    proxy_lr: the learning rate of proxies, times the network's.
    normalised: choose proxies on the ball instead of by raw vectors.
    reset_proxy_state: the optimiser forgets the old proxies.
    """

    proxies: int = 8
    pool: int = 12
    pull: float = 2e-4
    pull_decay: float = 1.0
    patience: int = 3
    min_improvement: float = 1e-5
    proxy_weight: float = 1.0
    pair_weight: float = 0.1
    proxy_lr: float = 1.0
    normalised: bool = False
    reset_proxy_state: bool = False

    def __post_init__(self) -> None:
        for name in ("proxies", "pool"):
            check(getattr(self, name) >= 1, f"ccp.{name} is at least 1 per class, not {getattr(self, name)}")
        for name in ("pull", "proxy_weight", "pair_weight", "proxy_lr"):
            check(getattr(self, name) >= 0, f"ccp.{name} must be at least 0, not {getattr(self, name)}")

    @property
    def pooled(self) -> int:
        """b': images per class in a pool."""
        return self.pool if self.pool >= self.proxies else self.pool * self.proxies


class ProxyObjective(nn.Module):
    """A pair loss between the batch and learnt proxies, and (a little) within the batch [math A20].

    loss: any loss of pairs; `FORMS` has the settings of the paper.
    settings: the number of proxies and the weights of the terms.
    classes: how many there are in training.
    dim: of the embeddings.
    regularisers: each adds a term on the embeddings alone.
    """

    miner = None
    labels: Tensor

    def __init__(
        self, loss: nn.Module, settings: Chance, classes: int, dim: int, regularisers: Sequence[nn.Module] = ()
    ) -> None:
        super().__init__()
        self.loss, self.settings = loss, settings
        self.regularisers = nn.ModuleList(regularisers)
        self.proxies = nn.Parameter(torch.zeros(classes * settings.proxies, dim))
        labels = torch.arange(classes).repeat_interleave(settings.proxies)
        self.register_buffer("labels", labels, persistent=False)

    def forward(
        self, embeddings: Float[Tensor, "n d"], labels: Integer[Tensor, " n"], step: int
    ) -> dict[str, Float[Tensor, ""]]:
        """The terms by name; their sum is minimised. `embeddings`: raw; `labels`: from 0; `step`: not used."""
        del step
        across: Tensor = self.loss(embeddings, Pairs.across(labels, self.labels), candidates=self.proxies)
        terms = {"loss": self.settings.proxy_weight * across}
        if self.settings.pair_weight:
            terms["pairs"] = self.settings.pair_weight * self.loss(embeddings, labels)
        for regulariser in self.regularisers:
            terms[type(regulariser).__name__] = regulariser(embeddings)
        return terms

    def parameter_groups(self, base_lr: float) -> Iterator[dict[str, Any]]:
        """The proxies, as a group for the optimiser; the network learns at `base_lr`."""
        yield {"name": "loss", "params": [self.proxies], "lr": self.settings.proxy_lr * base_lr, "weight_decay": 0.0}


class ChanceConstraints:
    """The sequence of instances: what changes between them, and the pull within each.

    network: what is trained.
    objective: holds the proxies.
    optimiser: of both.
    pool: train images from which proxies are chosen.
    weight_decay: added to all gradients but batch normalisation's, before clipping; give the optimiser none.
    """

    def __init__(
        self,
        network: nn.Module,
        objective: ProxyObjective,
        optimiser: torch.optim.Optimizer,
        pool: Pool,
        weight_decay: float = 0.0,
    ) -> None:
        self.network, self.objective, self.optimiser = network, objective, optimiser
        self.pool, self.weight_decay, self.settings = pool, weight_decay, objective.settings
        norms = [module for module in network.modules() if isinstance(module, _BatchNorm)]
        self.undecayed = {id(parameter) for module in norms for parameter in module.parameters()}
        self.unseen: Unseen | None = None
        self.instance = 0  # t
        self.anchor: dict[str, Tensor] = {}  # θ_anchor
        self.best: dict[str, Tensor] = {}  # of this instance
        self.best_proxies = torch.zeros(0)
        self.watch = self._watch()

    def _watch(self) -> EarlyStop:
        return EarlyStop(self.settings.patience, self.settings.min_improvement)

    @property
    def pull(self) -> float:
        """λ_t; nothing pulls in the first instance."""
        return self.settings.pull * self.settings.pull_decay**self.instance if self.instance else 0.0

    def begin(self) -> Event:
        """The proxies of the first instance, chosen far from the origin and from each other."""
        classes = len(self.objective.proxies) // self.settings.proxies
        return self._place(self.objective.proxies.new_zeros(classes, 1, self.objective.proxies.shape[1]), 0)

    @torch.no_grad()
    def gradients(self) -> None:
        """Add the pull towards the anchor, and the decay."""
        for name, parameter in self.network.named_parameters():
            if parameter.grad is None:
                continue
            if self.pull:
                parameter.grad.add_(parameter - self.anchor[name], alpha=self.pull)
            if self.weight_decay and id(parameter) not in self.undecayed:
                parameter.grad.add_(parameter, alpha=self.weight_decay)
        proxies = self.objective.proxies
        if proxies.grad is not None and self.weight_decay:
            proxies.grad.add_(proxies, alpha=self.weight_decay)

    def validated(self, step: int, value: float) -> Event | None:
        """Record the `value` of a validation after a `step`; when the instance has converged, begin the next."""
        if self.watch.improved(step, value):
            self.best = {name: part.detach().clone() for name, part in self.network.named_parameters()}
            self.best_proxies = self.objective.proxies.detach().clone()
        return self._next_instance(step) if self.watch.over else None

    def _next_instance(self, step: int) -> Event:
        self.instance += 1
        self.anchor = self.best
        self.watch = self._watch()
        event = self._place(self.best_proxies.view(-1, self.settings.proxies, self.best_proxies.shape[1]), step)
        if self.settings.reset_proxy_state:
            self.optimiser.state.pop(self.objective.proxies, None)
        return event

    @torch.no_grad()
    def _place(self, repelling: Float[Tensor, "classes k d"], step: int) -> Event:
        """New proxies from a pool of the current weights; the old ones only repel the choice."""
        points = self.pool.draw(self.network, self.settings.pooled, self.instance)
        proxies = points if self.settings.pool == 1 else farthest(points, repelling, self.settings)
        self.objective.proxies.copy_(proxies.flatten(0, 1))
        return instance_event(self.instance, step, points, None if self.unseen is None else self.unseen())

    def state_dict(self) -> dict[str, Any]:
        names = ("instance", "anchor", "best", "best_proxies")
        parts = {"watch": self.watch.state_dict(), "queues": self.pool.queues.state_dict()}
        return {name: copy.copy(getattr(self, name)) for name in names} | parts

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        device = self.objective.proxies.device
        self.instance, self.best_proxies = state["instance"], state["best_proxies"].to(device)
        self.anchor, self.best = (
            {name: part.to(device) for name, part in state[weights].items()} for weights in ("anchor", "best")
        )
        self.watch.load_state_dict(state["watch"])
        self.pool.queues.load_state_dict(state["queues"])


def farthest(
    points: Float[Tensor, "classes b d"], repelling: Float[Tensor, "classes k d"], settings: Chance
) -> Float[Tensor, "classes proxies d"]:
    """Of every class the points farthest from the repelling ones and from each other."""
    vectors, away = points, repelling
    if settings.normalised:
        vectors, away = (normalise(part.flatten(0, 1), "ball").view_as(part) for part in (points, repelling))
    return points.take_along_dim(greedy_k_center(vectors, settings.proxies, away)[..., None], dim=1)


def instance_event(
    instance: int, step: int, points: Float[Tensor, "classes b d"], unseen: tuple[Tensor, Tensor] | None = None
) -> Event:
    """An instance in numbers: covering radius [math F.9] and distance between classes, on a fresh pool of train images
    and (figure 2 of the paper) on validation images."""
    codes = torch.arange(len(points)).repeat_interleave(points.shape[1])
    radius, apart = _cover(points.flatten(0, 1), codes)
    event = {"instance": instance, "covering_radius": radius, "between_classes": apart}
    text = f"step {step}: instance {instance}, covering radius {radius:.4f}, distance between classes {apart:.4f}"
    if unseen is not None:
        radius, apart = _cover(*unseen)
        event |= {"unseen_covering_radius": radius, "unseen_between_classes": apart}
        text += f"; on validation classes {radius:.4f} and {apart:.4f}"
    return {"event": "note", "step": step, "text": text, **event}


def _cover(vectors: Tensor, labels: Tensor) -> tuple[float, float]:
    """Covering radius and distance between classes in the unit ball, on some of the classes where there are many."""
    classes = labels.unique()  # type: ignore[no-untyped-call]
    some = classes[torch.linspace(0, len(classes) - 1, min(MEASURED, len(classes))).long()]
    chosen = torch.isin(labels, some)
    kept, codes = normalise(vectors[chosen.to(vectors.device)], "ball").cpu(), labels[chosen].numpy()
    return covering_radius(kept, codes), between_classes(kept, codes)
