"""Epochs, position, resuming and ranks: what all samplers share, whatever they put into a batch.

A sampler composes a whole epoch at once, from a generator seeded by (seed, epoch); its `course` says where training
stands in it. Every sampler has the methods below, written once, here:

- `iter(sampler)` yields the batches that are not consumed yet. Iterating does not consume: a `DataLoader` asks for
  batches before they are trained on.
- `step()` says that one more batch was consumed. The trainer calls it after every training step; after the last batch
  it begins the next epoch. Only then is `state_dict()` exact in the middle of an epoch, prefetching or not.
- Whoever never calls `step` still gets new batches every epoch: an epoch iterated to its end counts as consumed when
  the next iteration begins.
- `set_epoch(epoch)` goes to the beginning of another epoch; for the current one it changes nothing, so that a resumed
  loop may call it.
- `state_dict()` is the same on every rank and may be loaded by another number of ranks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Integer
from torch import Tensor

from lookalike.errors import check
from lookalike.samplers.sharing import shares


def epoch_length(images: int, batch_size: int, batches: int | None) -> int:
    """The number of batches asked for, or else ⌊images / batch_size⌋."""
    if batches is not None:
        return batches
    check(
        images >= batch_size,
        f"{images} images do not fill one batch of {batch_size}: choose a smaller batch_size, or say how many batches "
        "make an epoch",
    )
    return images // batch_size


@dataclass
class Course:
    """Where training stands. `labels` numbers the class of every image; each rank receives its share of every batch."""

    compose: Callable[[torch.Generator], Tensor]
    labels: Integer[Tensor, " n"]
    batches: int
    batch_size: int
    per_class: int = 1
    seed: int = 0
    rank: int = 0
    ranks: int = 1
    keeps_batches: bool = False  # the state holds the epoch's batches, because embeddings that have changed chose them
    epoch: int = field(default=0, init=False)
    position: int = field(default=0, init=False)
    composed: Tensor | None = field(default=None, init=False, repr=False)
    iterated: int | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        m = self.batch_size
        check(self.batches > 0, f"an epoch has at least one batch, not {self.batches}")
        check(self.seed >= 0, f"seed must not be negative, not {self.seed}")
        check(self.ranks > 0 and m % self.ranks == 0, f"a batch of {m} cannot be shared evenly by {self.ranks} ranks")
        check(0 <= self.rank < self.ranks, f"rank must be from 0 to {self.ranks - 1}, not {self.rank}")
        share = m // self.ranks
        check(
            share % self.per_class == 0,
            f"each of {self.ranks} ranks gets {share} images, which {self.per_class} per class do not divide: "
            "positives would be separated",
        )

    def plan(self) -> Integer[Tensor, "batches m"]:
        """All batches of the epoch, for all ranks together."""
        if self.composed is None:
            seed = np.random.SeedSequence((self.seed, self.epoch)).generate_state(1, np.uint64)
            self.composed = self.compose(torch.Generator().manual_seed(int(seed[0])))
        return self.composed

    def share(self, batch: Integer[Tensor, " m"]) -> list[int]:
        """This rank's part of a batch."""
        if self.ranks > 1:
            batch = batch[shares(self.labels[batch].tolist(), self.ranks)[self.rank]]
        indices: list[int] = batch.tolist()
        return indices


@runtime_checkable
class Sampler(Protocol):
    """What every sampler is: a batch sampler of torch, with a course."""

    course: Course

    def __iter__(self) -> Iterator[list[int]]: ...
    def __len__(self) -> int: ...
    def step(self) -> None: ...
    def set_epoch(self, epoch: int) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...


def iterate(self: Sampler) -> Iterator[list[int]]:
    """The batches of the epoch that are not consumed yet, as lists of dataset indices."""
    course = self.course
    if course.iterated == course.epoch:
        set_epoch(self, course.epoch + 1)
    epoch = course.epoch
    for batch in course.plan()[course.position :]:
        yield course.share(batch)
    course.iterated = epoch


def length(self: Sampler) -> int:
    """Batches per epoch."""
    return self.course.batches


def set_epoch(self: Sampler, epoch: int) -> None:
    """Go to the beginning of an epoch, or stay where you are in the current one."""
    check(epoch >= 0, f"epoch must not be negative, not {epoch}")
    course = self.course
    course.iterated = None
    if epoch != course.epoch:
        course.epoch, course.position, course.composed = epoch, 0, None


def step(self: Sampler) -> None:
    """One more batch was consumed."""
    self.course.position += 1
    if self.course.position == self.course.batches:
        set_epoch(self, self.course.epoch + 1)


def state_dict(self: Sampler) -> dict[str, Any]:
    """What it takes to continue after the last consumed batch."""
    course = self.course
    state: dict[str, Any] = {
        "images": len(course.labels),
        "batch_size": course.batch_size,
        "batches": course.batches,
        "seed": course.seed,
        "epoch": course.epoch,
        "position": course.position,
    }
    if course.keeps_batches:
        state["composed"] = course.composed
    return state


def load_state_dict(self: Sampler, state: dict[str, Any]) -> None:
    """Continue where `state_dict` was taken: the rest of the epoch, and all later ones, are the same."""
    course, here = self.course, state_dict(self)
    for fact in ("images", "batch_size", "batches"):
        was = state.get(fact)
        check(was == here[fact], f"the saved sampler had {fact} = {was}, this one has {here[fact]}: they must agree")
    course.seed, course.epoch, course.position = state["seed"], state["epoch"], state["position"]
    course.composed, course.iterated = state.get("composed"), None
