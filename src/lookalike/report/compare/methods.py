"""Runs put together: trainings that differ in nothing but seed and fold are one method; a study's rows are methods.

Folds of one seed are averaged query by query, as the fair protocol does [math F.13], so that a method has one result
per seed.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lookalike.errors import check
from lookalike.evaluation import Result
from lookalike.evaluation.statistics.seeds import Spread, averaged, difference_by_seed
from lookalike.runs.finished import Finished, is_run, read

CELL = re.compile(r"(?P<row>.*)-seed-\d+-[0-9a-f]{10}")  # the folder of a study's cell
BESIDE = (".claim", ".failed", ".lock")  # files that a study keeps beside its cells: study/cells/* names them too
SEED = re.compile(r"[-_ ]?seed[-_ ]?\d+$")


@dataclass(frozen=True)
class Method:
    """Trainings with the same settings.

    name: that of their folder, or of the row of a study.
    runs: one for every seed and fold.
    """

    name: str
    runs: tuple[Finished, ...]

    @property
    def optimistic(self) -> bool:
        return any(run.optimistic for run in self.runs)

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting by its dotted key, without seed and fold."""
        return _common(self.runs[0].settings)

    def results(self, role: str = "model") -> dict[int, Result]:
        """One result per seed; `role`: "model", "train" (on its train images) or "baseline"."""
        by_seed: dict[int, list[Result]] = {}
        for run in self.runs:
            if role in run.results:
                by_seed.setdefault(run.seed, []).append(run.results[role])
        return {seed: folds[0] if len(folds) == 1 else averaged(folds) for seed, folds in sorted(by_seed.items())}

    def gap(self, other: "Method", metric: str) -> Spread | None:
        """How much higher its `metric` is than that of the `other`, in pairs of equal seeds (or in order, where no seed
        is the same); None: there is no pair."""
        return difference_by_seed(self.results(), other.results(), metric, in_order=True)


@dataclass(frozen=True)
class Collection:
    """Methods in the order of their folders.

    title: of the study, or the names of the methods.
    methods: all of them, the baseline included.
    baseline: the one the others are compared with.
    """

    title: str
    methods: tuple[Method, ...]
    baseline: Method

    def named_runs(self) -> list[tuple[str, Finished]]:
        """Every training with the name of its method, and its seed where the method has several."""
        return [
            (method.name if len(method.runs) == 1 else f"{method.name}, seed {run.seed}", run)
            for method in self.methods
            for run in method.runs
        ]

    def differing(self) -> dict[str, list[Any]]:
        """The settings in which the methods differ, with each one's value."""
        each = [method.settings for method in self.methods]
        keys = dict.fromkeys(key for settings in each for key in settings)
        values = {key: [settings.get(key) for settings in each] for key in keys}
        return {key: row for key, row in values.items() if any(value != row[0] for value in row)}


class _Place(NamedTuple):
    name: str
    folder: Path


def collect(paths: Sequence[Path | str], baseline: str | None = None) -> Collection:
    """The methods in the folders `paths`: runs, runs of several seeds or folds, or a whole study.

    `baseline`: its name; None: that of the study, or the first.
    """
    folders = [path for path in map(Path, paths) if not (path.is_file() and path.suffix in BESIDE)]
    check(len(folders) > 0, "give the folder of a run, or of a study")
    places = [place for folder in folders for place in _places(folder)]
    groups: list[tuple[str, list[Finished]]] = []
    for place in places:
        run = read(place.folder)
        for name, runs in groups:
            if _same(runs, run) and (name == place.name or not _in_study(place.folder)):
                runs.append(run)
                break
        else:
            groups.append((place.name, [run]))
    names = _distinct([(name, runs[0].path) for name, runs in groups])
    methods = tuple(Method(name, tuple(runs)) for name, (_, runs) in zip(names, groups, strict=True))
    against = baseline or next((row for folder in folders if (row := _study(folder).get("baseline"))), None)
    first = next((method for method in methods if method.name == against), methods[0])
    possible = ", ".join(method.name for method in methods)
    check(baseline is None or first.name == baseline, f"there is no '{baseline}' to compare with. Possible: {possible}")
    title = _study(folders[0]).get("title") if len(folders) == 1 else None
    return Collection(str(title or _listed(names)), methods, first)


def _listed(names: Sequence[str]) -> str:
    """Names as a title.

    >>> _listed(["triplet", "margin", "nca", "angular", "snr"])
    'triplet, margin, nca and 2 more'
    """
    few = list(names[:3])
    return f"{', '.join(few)} and {len(names) - 3} more" if len(names) > 3 else ", ".join(few)


def _places(folder: Path) -> Iterator[_Place]:
    """The single trainings within a folder, and the name of the method each belongs to."""
    check(folder.is_dir(), f"'{folder}' is not a folder: give the folder of a run, or of a study")
    name = SEED.sub("", folder.resolve().name) or folder.resolve().name
    if (folder / "cells").is_dir():
        rows = {slug(row["name"]): row["name"] for row in _study(folder).get("rows", [])}
        cells = [cell for cell in sorted((folder / "cells").iterdir()) if is_run(cell) or list(_several(cell))]
        check(bool(cells), f"no cell of the study in '{folder}' is finished yet")
        order = {row: place for place, row in enumerate(rows)}
        matches = [(CELL.fullmatch(cell.name), cell) for cell in cells]
        named = [(str(match["row"]) if match else cell.name, cell) for match, cell in matches]
        for row, cell in sorted(named, key=lambda pair: order.get(pair[0], len(order))):
            yield from (_Place(rows.get(row, row), place) for place in (list(_several(cell)) or [cell]))
        return
    inside = list(_several(folder))
    yield from (_Place(name, place) for place in inside or [folder])


def _several(folder: Path) -> Iterator[Path]:
    """The runs of seeds and folds in the folder of a run."""
    for place in sorted(folder.glob("seed-*")) + sorted(folder.glob("fold-*")):
        if is_run(place):
            yield place


def _in_study(folder: Path) -> bool:
    return "cells" in (folder.parent.name, folder.parent.parent.name)


def _study(folder: Path) -> dict[str, Any]:
    file = folder / "study.json"
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return content


def slug(row: str) -> str:
    """A row of a study in the names of its cells' folders."""
    return re.sub("[^a-z0-9]+", "-", row.lower()).strip("-")[:60]


def _same(runs: Sequence[Finished], run: Finished) -> bool:
    """Whether a run is another seed or fold of these."""
    if not run.settings:
        return False
    taken = {(other.seed, other.fold) for other in runs}
    return (run.seed, run.fold) not in taken and _common(runs[0].settings) == _common(run.settings)


def _common(settings: Mapping[str, Any]) -> dict[str, Any]:
    flat = dict(_flat(settings, ""))
    left_out = {"seed", "protocol.fold", "protocol.seeds", "protocol.models"}
    if "train.minutes" in flat:  # then the clock decided on the steps
        left_out |= {"train.steps"}
    return {key: value for key, value in flat.items() if key not in left_out}


def _flat(settings: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{where}{key}.")
        else:
            yield f"{where}{key}", value


def _distinct(named: Sequence[tuple[str, Path]]) -> list[str]:
    """Names, with as much of the path as tells them apart."""
    names = [name for name, _ in named]
    long = [name if names.count(name) == 1 else f"{path.parent.name}/{path.name}" for name, path in named]
    return [
        name if long.count(name) == 1 else f"{name} #{long[:place].count(name) + 1}" for place, name in enumerate(long)
    ]
