"""Several processes, one run: `torchrun --nproc-per-node 2 -m lookalike fit …`, over gloo (CPU) or nccl (GPU).

Batches are composed for all processes together. Each embeds its share; the embeddings are gathered, every process works
out the whole objective on them, and takes the gradient of its own rows back through its network. The sum of what the
processes find is the gradient of the whole batch: no gradient passes through the exchange, so no factor of the number
of processes can go wrong, and miners, memories and proxies see what one process alone would see.

All processes draw the same random numbers (miners must agree), so a dropout mask repeats from share to share.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from jaxtyping import Integer
from torch import Tensor

from lookalike.processes import Ranks, all_present
from lookalike.samplers import BatchSampler
from lookalike.samplers.batch_sampler import shares

PATIENCE = timedelta(hours=2)  # one process may evaluate while the others wait; a dead one is noticed at once


def split(ranks: Ranks, sampler: BatchSampler) -> "Split | None":
    """How the batch at which a sampler stands is shared out; None: it is not."""
    if ranks.count == 1:
        return None
    classes = sampler.labels[sampler.plan()[sampler.position]].tolist()
    return Split(ranks, torch.tensor(shares(classes, ranks.count)))


class Split(NamedTuple):
    """The places of a batch that each process has."""

    ranks: Ranks
    places: Integer[Tensor, "ranks share"]

    def whole(self, share: Tensor) -> Tensor:
        """The batch in its own order, from the shares of all ranks."""
        everyone = self.ranks.gathered(share)
        return everyone[self.places.flatten().argsort().to(share.device)]

    def own(self, whole: Tensor) -> Tensor:
        """This process's share."""
        return whole[self.places[self.ranks.rank].to(whole.device)]


class Shared:
    """Batches of whole rows or tickets, of which every process takes its share, class by class.

    Tickets are numbered before they are shared out: an image is augmented alike on any number of processes.
    """

    def __init__(self, batches: Any, sampler: BatchSampler, ranks: Ranks) -> None:
        sampler.check_shares(ranks.count)
        self.batches, self.labels, self.ranks = batches, sampler.labels, ranks

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[list[Any]]:
        for batch in self.batches:
            rows = [getattr(entry, "row", entry) for entry in batch]
            own = shares(self.labels[rows].tolist(), self.ranks.count)[self.ranks.rank]
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
    """The run's folder `path` for the first process; for the others a copy, thrown away, so that all can do the same.

    `resume`: the copy begins with what the folder holds; else it is empty.
    """
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
