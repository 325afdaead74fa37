"""A data set for processes on other machines: its files under absolute names, and whether a machine sees them."""

import os
from dataclasses import replace
from pathlib import Path

from lookalike.data.dataset import Dataset
from lookalike.data.images.source import Files
from lookalike.errors import check

SAMPLE = 20  # files of the whole list: if none of them is there, the data are not


def absolute(dataset: Dataset) -> Dataset:
    """The same data set, wherever a process is started."""
    images = dataset.images
    if not isinstance(images, Files):
        return dataset
    return replace(dataset, images=Files(Path(os.path.abspath(images.root)), images.paths))


def check_reach(dataset: Dataset) -> None:
    """Some files may be missing; where all are, this machine does not see the data."""
    images = dataset.images
    if isinstance(images, Files) and len(images):
        sample = [images.path(step * len(images) // SAMPLE) for step in range(SAMPLE)]
        reached = any(map(os.path.exists, sample))
        check(reached, f"'{sample[0]}' is gone, and so are all others: is {dataset.name} within reach?")
