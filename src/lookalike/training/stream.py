"""Batches without end, from where a sampler stands; under several processes each takes its share of every batch."""

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader

from lookalike.data import AugmentedImages, Tickets
from lookalike.features import FeatureViews
from lookalike.processes import Ranks
from lookalike.samplers import BatchSampler
from lookalike.training.distributed import Shared


def stream(
    dataset: torch.utils.data.Dataset[Any],
    sampler: BatchSampler,
    workers: int = 0,
    ranks: Ranks | None = None,
    pinned: bool = False,
) -> Iterator[Any]:
    """Batches from where the sampler stands; taking one advances the sampler by `step`.

    `pinned`: in memory from which a GPU copies by itself.
    """
    batches: Any = sampler
    if isinstance(dataset, AugmentedImages | FeatureViews):
        batches = Tickets(sampler, sampler.epoch, sampler.position)
    shares = batches if ranks is None or ranks.count == 1 else Shared(batches, sampler, ranks)
    own = torch.Generator().manual_seed(sampler.seed)  # otherwise each epoch consumes torch's global random numbers
    load: DataLoader[Any] = DataLoader(
        dataset,
        batch_sampler=shares,
        num_workers=workers,
        generator=own,
        persistent_workers=workers > 0,
        pin_memory=pinned,
    )
    while True:
        yield from map(dataset.batch, shares) if isinstance(dataset, FeatureViews) else load
        batches.set_epoch(sampler.epoch)
