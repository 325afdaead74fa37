"""Verma et al., "Manifold Mixup", ICML 2019, for metric learning (Revisiting Training Strategies, sec. H) [math D.3].

λ ~ Beta(2, 2), a permutation π and a place in the network are drawn per batch; there, h ← λ h + (1 − λ) h[π]. The
objective is taken twice, on the labels y with weight λ and on y[π] with weight 1 − λ: tuples are mined anew for each.

Under several processes, partners come from the same process.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Integer
from torch import Tensor, nn

from lookalike.errors import UserError, check, unknown

INPUT = "input"


@dataclass(frozen=True)
class Mixture:
    """One draw: where, how much of the image itself, and with whom. Without a place nothing is mixed."""

    place: str | None = None
    share: float = 1.0  # λ
    partner: Integer[Tensor, " n"] = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))

    def embed(self, network: nn.Module, inputs: Tensor) -> Tensor:
        """The inputs through the network, mixed on the way."""
        if self.place is None or self.place == INPUT:
            mixed = inputs if self.place is None else self.mixed(inputs)
            embeddings: Tensor = network(mixed)
        else:
            embeddings = network(inputs, after=lambda stage, h: self.mixed(h) if stage == self.place else h)
        return embeddings

    def mixed(self, values: Tensor) -> Tensor:
        """λ h + (1 − λ) h[π].

        >>> Mixture("input", 0.75, torch.tensor([1, 0])).mixed(torch.tensor([[0.0], [4.0]])).flatten()
        tensor([1., 3.])
        """
        return self.share * values + (1 - self.share) * values[self.partner.to(values.device)]

    def label_sets(self, labels: Tensor) -> list[tuple[float, Tensor]]:
        """The labels to take the objective on, each with its weight."""
        if self.place is None:
            return [(1.0, labels)]
        return [(self.share, labels), (1 - self.share, labels[self.partner.to(labels.device)])]


@dataclass(frozen=True)
class Mixup:
    """[mixup]: λ ~ Beta(alpha, alpha), anew for every batch.

    alpha: the larger, the nearer λ to a half.
    places: where it may mix: "input" and names of stages; empty: input and all stages but the stem.
    """

    alpha: float = 2.0
    places: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check(self.alpha > 0, f"mixup.alpha must be positive, not {self.alpha}")


def check_whole_batch(chunk: int | None) -> None:
    """Refuse to mix where a batch goes through the network in chunks."""
    check(chunk is None, "mixup mixes the whole batch: leave out mixup or train.chunk")


@dataclass(frozen=True)
class Mixer:
    """Draws mixtures from its own generator.

    >>> mixer = Mixer(2.0, ("input", "layer1"), torch.Generator().manual_seed(0))
    >>> mixture = mixer.draw(4)
    >>> mixture.place in mixer.places, 0 < mixture.share < 1, sorted(mixture.partner.tolist())
    (True, True, [0, 1, 2, 3])
    """

    alpha: float
    places: Sequence[str]
    generator: torch.Generator

    def draw(self, count: int) -> Mixture:
        place = self.places[int(torch.randint(len(self.places), (), generator=self.generator))]
        # Beta(α, α) from two gamma draws: torch's own Beta takes no generator
        ends = torch._standard_gamma(torch.full((2,), self.alpha, dtype=torch.float64), generator=self.generator)
        partner = torch.randperm(count, generator=self.generator)
        return Mixture(place, float(ends[0] / ends.sum()), partner)


def mixer(settings: Mixup, network: nn.Module, generator: torch.Generator) -> Mixer:
    """A mixer whose places are in this network."""
    stages = getattr(getattr(network, "backbone", None), "stages", None)
    if stages is None:
        raise UserError("mixup after a stage needs a network with stages: give an Embedder")
    possible = (INPUT, *stages)
    for place in settings.places:
        if place not in possible:
            raise unknown("place to mix at", place, possible)
    return Mixer(settings.alpha, settings.places or tuple(place for place in possible if place != "stem"), generator)
