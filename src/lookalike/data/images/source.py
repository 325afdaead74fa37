"""Where images come from: files, arrays in memory, or the decoded cache. All are read in the same two steps.

`open(row)` gives the size without decoding; the augmentation chooses its crop; `decode` does no more than it needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from lookalike.data.images.decode import Encoded
from lookalike.data.string_column import StringColumn
from lookalike.files import printable
from lookalike.image_files import read


@runtime_checkable
class Picture(Protocol):
    """One image whose size is known."""

    @property
    def height(self) -> int: ...

    @property
    def width(self) -> int: ...

    def decode(self, scale: float = 1.0) -> UInt8[Tensor, "3 h w"]:
        """The image in RGB, possibly reduced, but to no less than `scale` times its size."""


@runtime_checkable
class Source(Protocol):
    """A column of images."""

    def __len__(self) -> int: ...

    def name(self, row: int) -> str:
        """The name of this image in lists and messages."""

    def open(self, row: int) -> Picture:
        """The image of this row; raises `UnreadableError`."""

    def take(self, rows: np.ndarray) -> "Source":
        """The images of these rows."""


@dataclass(frozen=True)
class Files:
    """Images in files; relative paths start at `root`."""

    root: Path
    paths: StringColumn

    def __len__(self) -> int:
        return len(self.paths)

    def name(self, row: int) -> str:
        return printable(self.paths[row])

    def path(self, row: int) -> Path:
        return self.root / self.paths[row]

    def open(self, row: int) -> Encoded:
        return Encoded(read(self.path(row)))

    def take(self, rows: np.ndarray) -> "Files":
        return Files(self.root, self.paths.take(rows))


@dataclass(frozen=True)
class DecodedImage:
    """An image that is decoded already, height × width × 3."""

    array: UInt8[np.ndarray, "h w 3"]

    @property
    def height(self) -> int:
        return int(self.array.shape[0])

    @property
    def width(self) -> int:
        return int(self.array.shape[1])

    def decode(self, scale: float = 1.0) -> UInt8[Tensor, "3 h w"]:
        del scale  # already decoded: reducing it would save nothing
        return torch.from_numpy(self.array).permute(2, 0, 1)


@dataclass(frozen=True)
class Arrays:
    """Images in memory: one array, or a list of different sizes, each h × w × 3 or h × w (grey)."""

    stack: np.ndarray | Sequence[np.ndarray]
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    def name(self, row: int) -> str:
        return f"image {self.rows[row]}"

    def open(self, row: int) -> DecodedImage:
        array = self.stack[int(self.rows[row])]
        return DecodedImage(array if array.ndim == 3 else np.repeat(array[:, :, None], 3, axis=2))

    def take(self, rows: np.ndarray) -> "Arrays":
        return Arrays(self.stack, self.rows[rows])
