"""The vectors of a data set in a folder of shards, which any number of processes fill.

    shards.json   the plan, written once: which images, as a digest of their list; which model; how many shards
    000042.npz    the vectors of one range of the list, with ids, paths, labels and what could not be read

A shard is whole or not there, and its content does not depend on who makes it: two processes on one shard do no harm.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np

from lookalike.data import Dataset
from lookalike.data.images.source import Files, Source
from lookalike.data.string_column import StringColumn
from lookalike.errors import UserError, check
from lookalike.files import open_regular, read_arrays, read_json, write_once
from lookalike.values import dataclass_of

PLAN = "shards.json"
SHARD = re.compile(r"\d{6}\.npz")
MOST = 999_999
EACH = 1_000  # images of a shard, where nobody says how many shards there are
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class ShardPlan:
    """What the shards of a folder are; fixed by the first process."""

    data: str
    root: str  # the folder that the names of the images begin at, as they had it
    images: int
    shards: int
    digest: str  # of names, labels and all other columns, in their order
    fingerprint: str  # of the model


class Shards:
    """The shards in `folder`, as its `plan` has them, numbered from 0; see `begin` and `open`."""

    def __init__(self, folder: Path, plan: ShardPlan) -> None:
        self.folder, self.plan = folder, plan

    @staticmethod
    def begin(folder: Path, plan: ShardPlan, shards: int | None) -> "Shards":
        """Join the work in `folder`, or begin it by `plan`; other images, another model, other `shards` are refused."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            foreign = [name for name in os.listdir(folder) if not name.startswith(".")]
            if not (folder / PLAN).is_file():  # it is there before anything else
                check(not foreign, f"'{folder}' holds other files, such as {''.join(foreign[:1])}: choose a new folder")
                write_once(folder / PLAN, json.dumps(asdict(plan), indent=2) + "\n")
        except OSError as error:
            raise UserError(f"cannot make the folder {folder} ({error.strerror}): choose another --out") from None
        result = Shards.open(folder)
        result._check(plan, shards)
        return result

    def _check(self, own: ShardPlan, shards: int | None) -> None:
        plan, where = self.plan, f"the shards in '{self.folder}'"
        check(
            plan.fingerprint == own.fingerprint,
            f"{where} are of another model ({plan.fingerprint[:8]}…, not {own.fingerprint[:8]}…): use that one, or "
            "choose another --out",
        )
        check(
            plan.digest == own.digest,
            f"{where} were begun with other images ({plan.images:,} of {plan.data}; here are {own.images:,} of "
            f"{own.data}): names and labels must be the same; choose another --out",
        )
        check(
            shards is None or plan.shards == own.shards,
            f"{where} are {plan.shards:,}, not {shards}: leave out --shards, or choose another --out",
        )

    @staticmethod
    def open(folder: Path) -> "Shards":
        """A `folder` that was begun."""
        check(is_shards(folder), f"there are no shards in '{folder}': make them with lookalike embed --shards")
        try:
            content = read_json(folder / PLAN)
            return Shards(folder, dataclass_of(ShardPlan, content, "the plan"))
        except (OSError, ValueError) as error:
            raise UserError(f"'{folder / PLAN}' cannot be read ({error}): choose another folder") from None

    def rows(self, number: int) -> range:
        """The images of the shard `number`: a range of the list, so that files of one folder stay together."""
        count, shards = self.plan.images, self.plan.shards
        return range(number * count // shards, (number + 1) * count // shards)

    def path(self, number: int) -> Path:
        """The file of the shard `number`, whether it is there or not."""
        return self.folder / f"{number:06d}.npz"

    def finished(self) -> set[int]:
        """The numbers of the shards that are there."""
        names = os.listdir(self.folder)
        return {int(name[:6]) for name in names if SHARD.fullmatch(name) and int(name[:6]) < self.plan.shards}

    def images(self, numbers: Iterable[int]) -> int:
        """How many images the shards of these `numbers` are of."""
        return sum(len(self.rows(number)) for number in numbers)

    def files(self) -> list[Path]:
        """All shards, in the order of the list; refused while some are missing."""
        missing = self.plan.shards - len(self.finished())
        check(
            missing == 0,
            f"{missing:,} of {self.plan.shards:,} shards in '{self.folder}' are missing: run lookalike embed on it "
            "until all are there",
        )
        return [self.path(number) for number in range(self.plan.shards)]

    def read(self, number: int) -> Arrays:
        """The arrays of the shard `number`, compared with their checksums and with the plan."""
        with self._refusing(number):
            arrays = read_arrays(self.path(number))
            if str(arrays["list"]) != self.plan.digest or str(arrays["fingerprint"]) != self.plan.fingerprint:
                raise ValueError("it belongs to another folder")
            return arrays

    def unreadable(self) -> Iterator[tuple[int, str, str]]:
        """The images that could not be read, each once: the shard, the name, and why."""
        for number in sorted(self.finished()):
            with (
                self._refusing(number),
                open_regular(self.path(number)) as file,
                np.load(file, allow_pickle=False) as shard,
            ):
                listed = json.loads(str(shard["unreadable"]))  # the other arrays are not read
            yield from ((number, name, reason) for name, reason in listed)

    @contextmanager
    def _refusing(self, number: int) -> Iterator[None]:
        """A damaged shard is one line."""
        try:
            yield
        except Exception as error:  # zip files and headers of arrays can be broken in many ways
            raise UserError(
                f"'{self.path(number)}' cannot be used ({error}): delete it, and the same command makes it again"
            ) from error

    def joined(self) -> Arrays:
        """All shards as one: embeddings, ids, and paths, labels and further columns where there are any."""
        self.files()
        parts = [self.read(number) for number in range(self.plan.shards)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0] if parts[0][name].ndim > 0}


def is_shards(place: object) -> bool:
    """Whether this is a folder of shards."""
    return isinstance(place, str | Path) and (Path(place) / PLAN).is_file()


def planned(dataset: Dataset, root: str, names: StringColumn, fingerprint: str, shards: int | None) -> ShardPlan:
    """The plan of the first process."""
    check(shards is None or 0 < shards <= MOST, f"choose 1 to {MOST:,} shards, not {shards}")
    count = len(dataset)
    shards = min(shards or -(-count // EACH), count)
    return ShardPlan(dataset.name, root, count, shards, _digest(names, dataset), fingerprint)


def listed(images: Source) -> tuple[str, StringColumn]:
    """A folder and the names of all images below it; where they are not in files, only names."""
    if not isinstance(images, Files):
        return "", StringColumn.of(images.name(row) for row in range(len(images)))
    if images.root != Path(images.root.anchor):
        return os.path.abspath(images.root), images.paths
    paths = [str(images.path(row)) for row in range(len(images))]
    root = os.path.commonpath([os.path.dirname(min(paths)), os.path.dirname(max(paths))])  # what they share, all share
    return root, StringColumn.of(path[len(root.rstrip("/")) + 1 :] for path in paths)


def _digest(names: StringColumn, dataset: Dataset) -> str:
    """A digest of the list of images: of their names and of every column."""
    digest = blake2b(digest_size=16)
    words = StringColumn.of((*dataset.label_names, "", *dataset.category_names))
    columns = {name: getattr(dataset, name).numpy() for name in dataset.columns()}
    for part in (names.buffer, names.ends, words.buffer, words.ends, *columns.values()):
        digest.update(np.ascontiguousarray(part).data)
    digest.update(" ".join(columns).encode())
    return digest.hexdigest()
