"""Several processes, one run: `torchrun --nproc-per-node 2 -m lookalike fit …`, over gloo (CPU) or nccl (GPU).

Batches are composed for all processes together. Each embeds its share; the embeddings are gathered, every process works
out the whole objective on them, and takes the gradient of its own rows back through its network. The sum of what the
processes find is the gradient of the whole batch: no gradient passes through the exchange, so no factor of the number
of processes can go wrong, and miners, memories and proxies see what one process alone would see.

All processes draw the same random numbers (miners must agree), so a dropout mask repeats from share to share.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import clear_frames
from typing import Any, NamedTuple, TypeVar

import torch
import torch.distributed as dist
from jaxtyping import Integer
from torch import Tensor, nn

from lookalike.errors import UserError
from lookalike.samplers.course import Course
from lookalike.samplers.sharing import shares

PATIENCE = timedelta(hours=2)  # one process may evaluate while the others wait; a dead one is noticed at once
Made = TypeVar("Made")


@dataclass(frozen=True)
class Ranks:
    """This process among all of the run; `Ranks()` is one that runs alone.

    >>> Ranks().gathered(torch.ones(2)), Ranks().first
    (tensor([1., 1.]), True)
    """

    rank: int = 0
    count: int = 1

    @staticmethod
    def current() -> "Ranks":
        """What torch.distributed says, if it was started."""
        started = dist.is_available() and dist.is_initialized()
        return Ranks(dist.get_rank(), dist.get_world_size()) if started else Ranks()

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and speaks."""
        return self.rank == 0

    def gathered(self, share: Tensor) -> Tensor:
        """The rows of all processes, in the order of their ranks; every process has equally many."""
        if self.count == 1:
            return share
        parts = [torch.empty_like(share, memory_format=torch.contiguous_format) for _ in range(self.count)]
        with all_present():
            dist.all_gather(parts, share.contiguous())
        return torch.cat(parts)

    def add_up(self, tensors: Iterable[Tensor | None], mean: bool = False) -> None:
        """Replace each tensor by its sum (or mean) over the processes, in one exchange."""
        listed = [tensor for tensor in tensors if tensor is not None]
        if self.count == 1 or not listed:
            return
        flat = torch.cat([tensor.flatten() for tensor in listed])
        with all_present():
            dist.all_reduce(flat)
        if mean:
            flat /= self.count
        parts = torch.split(flat, [tensor.numel() for tensor in listed])
        for tensor, part in zip(listed, parts, strict=True):
            tensor.copy_(part.view_as(tensor))

    def any(self, here: bool) -> bool:
        """Whether it holds on any process."""
        return here if self.count == 1 else bool(self.gathered(torch.tensor([here], dtype=torch.uint8)).any())

    def from_first(self, make: Callable[[], Made]) -> Made:
        """What the first process makes, for all of them."""
        if self.count == 1:
            return make()
        box: list[Any] = [make() if self.first else None]
        with all_present():
            dist.broadcast_object_list(box)
        made: Made = box[0]
        return made

    def same_start(self, *modules: nn.Module) -> None:
        """Give every process the parameters and buffers of the first."""
        if self.count > 1:
            with all_present():
                for module in modules:
                    for tensor in module.state_dict().values():
                        dist.broadcast(tensor, 0)

    def spread(self, count: int, make: Callable[[Integer[Tensor, " some"]], Tensor]) -> Tensor:
        """`make` for the numbers 0 … count − 1, a part of them in each process; all rows in all processes.

        >>> Ranks().spread(3, lambda rows: rows * 10)
        tensor([ 0, 10, 20])
        """
        size = -(-count // self.count)
        rows = torch.arange(self.rank * size, (self.rank + 1) * size).clamp(max=count - 1)
        return self.gathered(make(rows))[:count]

    def check_shares(self, course: Course) -> None:
        """Refuse batches that cannot be shared out, class by class."""
        replace(course, rank=self.rank, ranks=self.count)

    def split(self, course: Course) -> "Split | None":
        """How the batch at which a sampler stands is shared out; None: it is not."""
        if self.count == 1:
            return None
        classes = course.labels[course.plan()[course.position]].tolist()
        return Split(self, torch.tensor(shares(classes, self.count)))


class Split(NamedTuple):
    """The places of a batch that each process has."""

    ranks: Ranks
    places: Integer[Tensor, "ranks share"]

    def whole(self, share: Tensor) -> Tensor:
        """The batch in its own order, from everybody's share."""
        everyone = self.ranks.gathered(share)
        return everyone[self.places.flatten().argsort().to(share.device)]

    def own(self, whole: Tensor) -> Tensor:
        """This process's share."""
        return whole[self.places[self.ranks.rank].to(whole.device)]


class Shared:
    """Batches of whole rows or tickets, of which every process takes its share, class by class.

    Tickets are numbered before they are shared out: an image is augmented alike on any number of processes.
    """

    def __init__(self, batches: Any, course: Course, ranks: Ranks) -> None:
        ranks.check_shares(course)
        self.batches, self.course, self.ranks = batches, course, ranks

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[list[Any]]:
        for batch in self.batches:
            rows = [getattr(entry, "row", entry) for entry in batch]
            own = shares(self.course.labels[rows].tolist(), self.ranks.count)[self.ranks.rank]
            yield [batch[place] for place in own]


@contextmanager
def joined() -> Iterator[Ranks]:
    """The processes that torchrun started, as one run; alone without torchrun."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        yield Ranks.current()
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    with all_present():
        dist.init_process_group(backend, timeout=PATIENCE)
    try:
        yield Ranks.current()
    finally:
        dist.destroy_process_group()


@contextmanager
def own_folder(path: Path, resume: bool) -> Iterator[Path]:
    """The run's folder for the first process; for the others a copy, thrown away, so that all can do the same."""
    ranks = Ranks.current()
    if ranks.first:
        ranks.any(False)  # wait until the others have their copy
        yield path
        return
    with TemporaryDirectory(prefix="lookalike-") as place:
        copy = Path(place) / path.name
        if resume and path.is_dir():
            shutil.copytree(path, copy)
        ranks.any(False)
        yield copy


@contextmanager
def all_present() -> Iterator[None]:
    """An exchange with the other processes; one that is gone is a message, not a stack of calls."""
    try:
        yield
    except RuntimeError as error:
        told = re.sub(r"^\[\S+\] ", "", str(error).strip().splitlines()[0]).split(". ")[0][:100]
        clear_frames(error.__traceback__)  # they hold the exchange: the threads of gloo must end before the interpreter
        raise UserError(
            f"another process of this run is gone ({told}): start them all again with --resume; "
            "the last checkpoint is kept"
        ) from error
