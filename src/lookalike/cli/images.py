"""The images that a verb embeds, without those that cannot be read, under their absolute paths; or their vectors."""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from lookalike import data
from lookalike.cli.bars import bar
from lookalike.data import Dataset
from lookalike.data.images.source import Files
from lookalike.data.string_column import StringColumn
from lookalike.errors import UserError
from lookalike.files import read_array


def readable_images(dataset: Dataset, split: str | None = None) -> Dataset:
    """The readable images of a split; unreadable ones are listed in `problems`."""
    part = dataset if split is None else dataset.where(split=split)
    with bar("reading images") as progress:
        images = data.readable(_absolute(part), progress=progress)
    if len(images) == 0:
        where = "" if split is None else f" of split '{split}'"
        example = f", for example {images.problems[-1].path}: {images.problems[-1].detail}" if images.problems else ""
        raise UserError(f"{dataset.name}: none of {len(part):,} images{where} can be read{example}")
    return images


def read_vectors(path: Path) -> Tensor:
    """The embeddings in a .npy file, one row per image."""
    try:
        return torch.from_numpy(read_array(path)).float()
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"'{path}' cannot be read as embeddings ({error}): give a .npy file of n × d numbers") from None


def _absolute(dataset: Dataset) -> Dataset:
    if not isinstance(dataset.images, Files):
        return dataset
    paths = (str(dataset.images.path(row).absolute()) for row in range(len(dataset)))
    return replace(dataset, images=Files(Path("/"), StringColumn.of(paths)))
