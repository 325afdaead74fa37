"""The images of one shard: read once, by several threads, and described by what the shard keeps of them."""

import errno
import os
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
from torch import Tensor

from lookalike.data import Dataset
from lookalike.data.dataset import ROLES, SPLITS
from lookalike.data.formats.unlabelled import NO_LABEL
from lookalike.data.images.decode import Encoded
from lookalike.data.images.digests import DIGEST
from lookalike.data.images.source import Files
from lookalike.data.string_column import StringColumn
from lookalike.errors import UserError
from lookalike.files import printable
from lookalike.image_files import UnreadableError, read

OWN_TROUBLE = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # of the process that reads, not of the file
Arrays = dict[str, np.ndarray]
Problems = list[tuple[str, str]]  # the name of an image, and why it cannot be read


class ImageStamp(NamedTuple):
    """A file as it was when it was embedded; an index recognises it by this."""

    size: int
    modified: int  # nanoseconds
    digest: str


@dataclass
class ShardImages:
    """Some rows of a data set, with their names below its root."""

    dataset: Dataset
    names: StringColumn
    stamps: dict[int, ImageStamp] = field(default_factory=dict)
    unreadable: dict[int, UnreadableError] = field(default_factory=dict)

    def pixels(self, place: int) -> Tensor | None:
        """An image, or None and a note why not."""
        images = self.dataset.images
        try:
            if not isinstance(images, Files):
                return images.open(place).decode()
            content, self.stamps[place] = _read(images.path(place))
            return Encoded(content).decode()
        except UnreadableError as error:
            self.unreadable[place] = error
            return None

    @property
    def kept(self) -> list[int]:
        return [place for place in range(len(self.dataset)) if place not in self.unreadable]

    @property
    def missing(self) -> bool:
        """Whether the system could not give some of the files, whatever they hold."""
        return any(error.kind == "missing" for error in self.unreadable.values())

    def problems(self) -> Problems:
        return [(printable(self.names[place]), self.unreadable[place].detail) for place in sorted(self.unreadable)]

    def columns(self, root: str) -> Arrays:
        """What is known of the images that were read; `root` is where their names begin."""
        kept = self.kept
        names = [self.names[place] for place in kept]
        arrays = {"ids": _texts([printable(f"{self.dataset.name}/{name}") for name in names])}
        if isinstance(self.dataset.images, Files):
            stamps = [self.stamps[place] for place in kept]
            arrays["paths"] = _texts([os.path.join(root, name) for name in names])
            arrays["file_size"] = np.array([stamp.size for stamp in stamps], np.int64)
            arrays["file_time"] = np.array([stamp.modified for stamp in stamps], np.int64)
            arrays["file_digest"] = _texts([stamp.digest for stamp in stamps])
        return arrays | _named(self.dataset.subset(kept))


def _named(dataset: Dataset) -> Arrays:
    """Labels, categories, splits and roles by their names; the last word stands for −1, which is none."""
    words = {
        "labels": dataset.label_names,
        "categories": (*dataset.category_names, ""),
        "splits": (*SPLITS, ""),
        "roles": (*ROLES, ""),
    }
    shown = [name for name in dataset.columns() if name in words]
    shown = shown if dataset.label_names != NO_LABEL else [name for name in shown if name != "labels"]
    return {name: _texts([words[name][number] for number in getattr(dataset, name).tolist()]) for name in shown}


def _texts(texts: list[str]) -> np.ndarray:
    return np.array(texts, np.str_)


def _read(path: Path) -> tuple[bytes, ImageStamp]:
    """The bytes of a file, and its stamp."""
    try:
        status = os.stat(path)
        content = read(path)
    except (OSError, ValueError, UnreadableError) as error:
        number = error.number if isinstance(error, UnreadableError) else getattr(error, "errno", None)
        if number in OWN_TROUBLE:
            reason = os.strerror(number)
            raise UserError(f"cannot read {path} ({reason}): start fewer workers on this machine") from error
        if isinstance(error, UnreadableError):
            raise
        raise UnreadableError("missing", f"it cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return content, ImageStamp(status.st_size, status.st_mtime_ns, blake2b(content, digest_size=DIGEST).hexdigest())
