"""The one batch sampler: epochs, position, resuming and ranks around a function that composes the batches of an epoch.

- An epoch is composed at once, from a generator seeded by (seed, epoch).
- Iterating yields the batches not consumed yet. Iterating does not consume: a `DataLoader` asks for batches before
  they are trained on.
- `step()` says that one more batch was consumed. The training loop calls it after every step; after the last batch it
  begins the next epoch. Only then is `state_dict()` exact in the middle of an epoch, with or without prefetching.
- A loop that never calls `step` still gets new batches every epoch: an epoch iterated to its end counts as consumed
  when the next iteration begins.
- `set_epoch(epoch)` goes to the beginning of another epoch; for the current one it changes nothing, so that a resumed
  loop may call it.
- `state_dict()` is the same on every rank and may be loaded under another number of ranks.
- Every rank gets the same number of images of a batch, and classes stay together wherever they fit.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec

import numpy as np
import torch
from jaxtyping import Integer
from torch import Tensor

from lookalike.errors import check, unknown

Compose = Callable[[int, torch.Generator], Integer[Tensor, "batches m"]]
Settings = ParamSpec("Settings")


@dataclass(repr=False)
class BatchSampler:
    """Batches as lists of image indices, for `DataLoader(…, batch_sampler=…)`; each rank gets its share of every batch.

    `labels` are the class numbers of all images. Without `batches` an epoch has ⌊images / batch_size⌋ of them.
    `compose` gives the batches of an epoch, one per row, from their number and a generator. `keeps_batches`: they are
    part of the state, because what chose them changes.

    >>> def in_order(batches: int, generator: torch.Generator) -> Tensor:
    ...     return torch.arange(2 * batches).view(batches, 2)
    >>> list(BatchSampler(in_order, torch.tensor([0, 0, 1, 1]), batch_size=2))
    [[0, 1], [2, 3]]
    """

    compose: Compose
    labels: Integer[Tensor, " n"]
    batch_size: int
    per_class: int = 1
    batches: int | None = None
    keeps_batches: bool = False  # the state holds the epoch's batches: the embeddings that chose them change
    seed: int = 0
    rank: int = 0
    ranks: int = 1
    epoch: int = field(default=0, init=False)
    position: int = field(default=0, init=False)
    composed: Tensor | None = field(default=None, init=False)
    iterated: int | None = field(default=None, init=False)
    name: str = field(default="BatchSampler", init=False)
    settings: dict[str, Any] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        images, m = len(self.labels), self.batch_size
        check(
            self.batches is not None or images >= m,
            f"{images} images do not fill one batch of {m}: choose a smaller batch_size, or set batches, the number "
            "of batches in an epoch",
        )
        self.length = images // m if self.batches is None else self.batches
        check(self.length > 0, f"an epoch has at least one batch, not {self.length}")
        check(self.seed >= 0, f"seed must be at least 0, not {self.seed}")
        self.check_shares(self.ranks)
        check(0 <= self.rank < self.ranks, f"rank must be from 0 to {self.ranks - 1}, not {self.rank}")

    def check_shares(self, ranks: int) -> None:
        """Refuse batches that `ranks` processes cannot share evenly, class by class."""
        m, n = self.batch_size, self.per_class
        check(ranks > 0 and m % ranks == 0, f"a batch of {m} cannot be shared evenly by {ranks} ranks")
        check(
            m // ranks % n == 0,
            f"each of {ranks} ranks gets {m // ranks} images, which {n} per class do not divide: positives would be "
            "separated",
        )

    def __repr__(self) -> str:
        settings = self.settings | {"seed": self.seed}  # a loaded state may have replaced it
        return f"{self.name}({', '.join(f'{setting}={value!r}' for setting, value in settings.items())})"

    def __len__(self) -> int:
        """Batches per epoch."""
        return self.length

    def __iter__(self) -> Iterator[list[int]]:
        """This rank's share of the batches of the epoch that are not consumed yet."""
        if self.iterated == self.epoch:
            self.set_epoch(self.epoch + 1)
        epoch = self.epoch
        for batch in self.plan()[self.position :]:
            share = shares(self.labels[batch].tolist(), self.ranks)[self.rank] if self.ranks > 1 else slice(None)
            yield batch[share].tolist()
        self.iterated = epoch

    def plan(self) -> Integer[Tensor, "batches m"]:
        """All batches of the epoch, for all ranks together."""
        if self.composed is None:
            seed = np.random.SeedSequence((self.seed, self.epoch)).generate_state(1, np.uint64)
            self.composed = self.compose(self.length, torch.Generator().manual_seed(int(seed[0])))
        return self.composed

    def step(self) -> None:
        """One more batch was consumed."""
        self.position += 1
        if self.position == self.length:
            self.set_epoch(self.epoch + 1)

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of another `epoch`; in the current one, keep the position."""
        check(epoch >= 0, f"epoch must be at least 0, not {epoch}")
        self.iterated = None
        if epoch != self.epoch:
            self.epoch, self.position, self.composed = epoch, 0, None

    def state_dict(self) -> dict[str, Any]:
        """What it takes to continue after the last consumed batch."""
        state: dict[str, Any] = {
            "images": len(self.labels),
            "batch_size": self.batch_size,
            "batches": self.length,
            "seed": self.seed,
            "epoch": self.epoch,
            "position": self.position,
        }
        if self.keeps_batches:
            state["composed"] = self.composed
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where `state` was taken: the rest of the epoch, and all later ones, are the same."""
        here = self.state_dict()
        for fact in ("images", "batch_size", "batches"):
            was = state.get(fact)
            check(
                was == here[fact], f"the saved sampler had {fact} = {was}, this one has {here[fact]}: they must agree"
            )
        self.seed, self.epoch, self.position = state["seed"], state["epoch"], state["position"]
        self.composed, self.iterated = state.get("composed"), None


def shows_settings(construct: Callable[Settings, BatchSampler]) -> Callable[Settings, BatchSampler]:
    """Decorates a function that makes a sampler: the sampler shows its settings, and a misspelt one is refused."""
    signature = inspect.signature(construct)
    # what has no default is data, not a setting: labels, categories, an embedding bank; and so are chances of labels
    every = signature.parameters.items()
    shown = [name for name, each in every if each.default is not each.empty and name != "chances"]

    @wraps(construct)
    def constructed(*values: Settings.args, **settings: Settings.kwargs) -> BatchSampler:
        for name in set(settings) - set(signature.parameters):
            raise unknown(f"setting of {construct.__name__}", name, shown)
        bound = signature.bind(*values, **settings)
        bound.apply_defaults()
        batches = construct(*values, **settings)
        batches.name = construct.__name__
        batches.settings = {name: bound.arguments[name] for name in shown}
        return batches

    return constructed


def shares(classes: Sequence[int], ranks: int) -> list[list[int]]:
    """The places of a batch for each rank, given the class at every place.

    Classes are dealt out whole, the largest first, each to the rank with the least room that still holds it; only what
    fits nowhere whole is cut. Equally large classes that fill the ranks evenly are never cut.

    >>> shares([4, 4, 9, 9, 7, 7, 5, 5], ranks=2)
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    size = len(classes) // ranks
    places: dict[int, list[int]] = {}
    for place, label in enumerate(classes):
        places.setdefault(label, []).append(place)
    dealt: list[list[int]] = [[] for _ in range(ranks)]
    loose: list[int] = []
    for group in sorted(places.values(), key=len, reverse=True):
        fitting = [rank for rank in range(ranks) if size - len(dealt[rank]) >= len(group)]
        if fitting:
            dealt[max(fitting, key=lambda rank: len(dealt[rank]))] += group
        else:
            loose += group
    for rank in sorted(range(ranks), key=lambda rank: len(dealt[rank])):
        room = size - len(dealt[rank])
        dealt[rank] += loose[:room]
        loose = loose[room:]
    return [sorted(rank) for rank in dealt]
