"""The processes of one run, as torchrun starts them: which one this is, and how they exchange tensors.

Everything here works the same in a process that runs alone; then nothing is exchanged.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from traceback import clear_frames
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from jaxtyping import Integer
from torch import Tensor, nn

from lookalike.errors import UserError

Value = TypeVar("Value")


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
        """Whether this is the process that writes files and prints."""
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

    def from_first(self, make: Callable[[], Value]) -> Value:
        """What the first process makes, for all of them."""
        if self.count == 1:
            return make()
        box: list[Any] = [make() if self.first else None]
        with all_present():
            dist.broadcast_object_list(box)
        value: Value = box[0]
        return value

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


@contextmanager
def all_present() -> Iterator[None]:
    """An exchange with the other processes; one that is gone is a message, not a stack of calls."""
    try:
        yield
    except RuntimeError as error:
        reason = re.sub(r"^\[\S+\] ", "", str(error).strip().splitlines()[0]).split(". ")[0][:100]
        clear_frames(error.__traceback__)  # they hold the exchange: the threads of gloo must end before the interpreter
        raise UserError(
            f"another process of this run is gone ({reason}): start them all again with --resume; "
            "the last checkpoint is kept"
        ) from error
