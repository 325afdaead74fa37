"""A data set as torch reads it: a row in, an augmented image out, the same in every process.

Every use of an image has a ticket: (row, epoch, batch, place in the batch). The random numbers of its augmentation come
from the seed and the ticket alone, so the number of workers, their order, and a restart in the middle of an epoch
change nothing. A file that cannot be read is replaced by another image of its class and listed.
"""

from collections.abc import Iterable, Iterator, Sequence, Sized
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor
from torch.utils.data import DataLoader

from lookalike.data.dataset import Dataset, Problem
from lookalike.data.images.augment import Augmentation, apply
from lookalike.errors import UserError
from lookalike.image_files import UnreadableError


class Ticket(NamedTuple):
    """One use of an image: which row, and when."""

    row: int
    epoch: int = 0
    batch: int = 0
    place: int = 0


class Sample(NamedTuple):
    """One image as a worker returns it; a batch has the same fields, stacked."""

    image: Tensor
    label: Tensor
    row: Tensor  # the row that was read: another one where the file is unreadable


class AugmentedImages(torch.utils.data.Dataset[Sample]):
    """The images of a data set, augmented, as uint8 3 × size × size (normalise a whole batch on its device).

    `augmentation` says how; what it draws depends on `seed`, epoch, batch and place alone.

    >>> from lookalike.data.formats.arrays import arrays
    >>> from lookalike.data.images.augment import preset
    >>> two = arrays(np.zeros((2, 40, 50, 3), np.uint8), ["hen", "owl"])
    >>> AugmentedImages(two, preset("roth").train)[1].image.shape
    torch.Size([3, 224, 224])
    """

    def __init__(self, dataset: Dataset, augmentation: Augmentation, seed: int = 0) -> None:
        self.dataset = dataset
        self.augmentation = augmentation
        self.seed = seed
        # shared memory: workers mark the files they could not read, the main process lists them
        self.unreadable = _shared(len(dataset))

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, ticket: Ticket | int) -> Sample:
        use = ticket if isinstance(ticket, Ticket) else Ticket(int(ticket))
        generator = torch.Generator().manual_seed(ticket_seed(self.seed, use))
        for row in self._candidates(use.row):
            try:
                image = self._image(row, generator)
            except UnreadableError:
                self.unreadable[row] = True
                continue
            return Sample(image, self.dataset.labels[row], torch.tensor(row))
        raise UserError(f"no image of {self.dataset.name} can be read: run lookalike audit to see why")

    def _image(self, row: int, generator: torch.Generator) -> UInt8[Tensor, "3 h w"]:
        picture = self.dataset.images.open(row)
        return apply(picture, self.augmentation.cut(picture.height, picture.width, generator))

    def _candidates(self, row: int) -> Iterator[int]:
        """The row itself, then the others of its class in order, then any other."""
        if not self.unreadable[row]:
            yield row
        mates = (self.dataset.labels == self.dataset.labels[row]).nonzero().flatten()
        later = torch.cat([mates[mates > row], mates[mates < row]])
        yield from later[~self.unreadable[later]].tolist()
        yield from (~self.unreadable).nonzero().flatten().tolist()

    def problems(self) -> list[Problem]:
        """The files that no worker could read so far."""
        problems = []
        for row in self.unreadable.nonzero().flatten().tolist():
            try:
                self.dataset.images.open(row).decode()
            except UnreadableError as error:
                problems.append(Problem(self.dataset.images.name(row), error.kind, error.detail))
        return problems


def _shared(rows: int) -> Tensor:
    flags = torch.zeros(rows, dtype=torch.bool)
    flags.share_memory_()  # type: ignore[no-untyped-call]
    return flags


def ticket_seed(seed: int, ticket: Ticket) -> int:
    """63 well-mixed bits; consecutive tickets must not have similar streams."""
    digest = blake2b(np.array([seed, *ticket], np.int64).tobytes(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


class Tickets:
    """A batch sampler, `batches`, whose rows become tickets of this `epoch`.

    `first` numbers the first batch after a restart in mid-epoch.
    """

    def __init__(self, batches: Iterable[Sequence[int]], epoch: int = 0, first: int = 0) -> None:
        self.batches = batches
        self.epoch = epoch
        self.first = first

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an `epoch`, and take the sampler there."""
        self.epoch, self.first = epoch, 0
        forward: Any = getattr(self.batches, "set_epoch", None)
        if forward is not None:
            forward(epoch)

    def __len__(self) -> int:
        assert isinstance(self.batches, Sized)
        return len(self.batches)

    def __iter__(self) -> Iterator[list[Ticket]]:
        for number, rows in enumerate(self.batches, start=self.first):
            yield [Ticket(int(row), self.epoch, number, place) for place, row in enumerate(rows)]


def loader(view: AugmentedImages, batches: Tickets, workers: int = 0, pin_memory: bool = False) -> DataLoader[Sample]:
    """A torch loader of `batches` from a `view`, as `Sample`: the same for any number of `workers`.

    `pin_memory` is that of `DataLoader`.
    """
    generator = torch.Generator().manual_seed(
        view.seed
    )  # without it each epoch would consume torch's global random numbers
    return DataLoader(
        view,
        batch_sampler=batches,
        num_workers=workers,
        generator=generator,
        pin_memory=pin_memory,
        persistent_workers=workers > 0,
    )
