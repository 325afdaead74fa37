"""One data set of two: the images of both, classes of the same name being one."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookalike.data.dataset import Dataset
from lookalike.data.images.source import Arrays, Files, Source
from lookalike.data.string_column import StringColumn
from lookalike.data.vocabulary import UNKNOWN
from lookalike.errors import check
from lookalike.image_files import UnreadableError


def joined(dataset: Dataset, other: Dataset) -> Dataset:
    """The images of a `dataset`, then those of the `other` one, as far as they can be read.

    Classes keep their numbers, new ones follow. Category, split, role and group of the other's images are left out.

    >>> from lookalike.data.formats.arrays import arrays
    >>> some, more = (arrays(np.zeros((2, 4, 4), np.uint8), names) for names in (["owl", "hen"], ["owl", "cat"]))
    >>> joined(some, more).label_names, joined(some, more).labels.tolist()
    (('hen', 'owl', 'cat'), [1, 0, 1, 2])
    """
    check(
        dataset.sets is None and other.sets is None,
        f"images of {dataset.name} have several labels or none, and marks give one: leave out the marks",
    )
    images, read = _both(dataset.images, other.images)
    number = {name: place for place, name in enumerate(dataset.label_names)}
    names = tuple(dict.fromkeys((*dataset.label_names, *other.label_names)))
    number |= {name: place for place, name in enumerate(names)}
    ours = torch.tensor([number[name] for name in other.label_names], dtype=torch.int64)
    pairs = [dataset.denied, None if other.denied is None else ours[other.denied]]
    denied = [part for part in pairs if part is not None]
    columns: dict[str, Any] = {
        name: _longer(getattr(dataset, name), len(read)) for name in dataset.columns() if name != "labels"
    }
    if other.origins is not None:
        own = _longer(dataset.labels[:0], len(dataset)) if dataset.origins is None else dataset.origins
        columns["origins"] = torch.cat((own, other.origins[read]))
    return replace(
        dataset,
        images=images,
        labels=torch.cat((dataset.labels, ours[other.labels[read]])),
        label_names=names,
        denied=torch.cat(denied) if denied else None,
        problems=dataset.problems + other.problems,
        **columns,
    )


def _longer(column: Tensor, count: int) -> Tensor:
    return torch.cat((column, torch.full((count,), UNKNOWN)))


def _both(images: Source, others: Source) -> tuple[Source, Tensor]:
    """One source, and which of the others are in it: unreadable files stay, unreadable arrays cannot."""
    every = torch.arange(len(others))
    if isinstance(images, Files) and isinstance(others, Files):
        paths = [images.paths[row] for row in range(len(images))]
        paths += [str(others.path(row).absolute()) for row in range(len(others))]
        return Files(images.root, StringColumn.of(paths)), every
    check(isinstance(images, Arrays), "marks can only be added to image files and to images in memory")
    assert isinstance(images, Arrays)
    stack = [images.stack[int(row)] for row in images.rows]
    read = []
    for row in range(len(others)):
        try:
            stack.append(others.open(row).decode().permute(1, 2, 0).contiguous().numpy())
            read.append(row)
        except UnreadableError:
            continue
    return Arrays(stack, np.arange(len(stack))), torch.tensor(read, dtype=torch.int64)
