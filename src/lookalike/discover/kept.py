"""What was found, in the folder of a review: photos with their vectors, and all levels of their groups, in one file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.discover.grouping import FoundGroups, Grouping
from lookalike.discover.photos import Photos
from lookalike.errors import UserError, check
from lookalike.files import read_arrays, whole_file
from lookalike.geometry import Geometry

FOUND, ANSWERS, LABELS, LOCK = "found.npz", "answers.jsonl", "labels.csv", ".lock"
STEPS = 20  # of the slider
FARTHEST = 1.001  # from 0 that coordinates and similarities on the sphere are
FORMS: Mapping[str, tuple[type, Sequence[str]]] = {  # of what is kept: its types, and their axes
    "vectors": (np.float32, "nd"),
    "squares": (np.float64, "n"),
    "nearest": (np.int64, "nk"),
    "known": (np.int64, "n"),
    "kept": (np.int64, "m"),
    "joined": (np.int64, "m"),
    "heights": (np.float64, "m"),
    "random": (np.float64, ""),
    "spread": (np.float64, ""),
    "finest": (np.float64, ""),
    "suggested": (np.float64, ""),
    "names": (np.str_, "n"),
    "labels": (np.str_, "n"),
    "ids": (np.str_, ("items",)),
    "model": (np.str_, ""),
    "fingerprint": (np.str_, ""),
    "state": (np.str_, ""),
}


@dataclass(frozen=True)
class KeptGroups:
    """Photos, and all levels of their groups.

    suggested: the level that the vectors suggest, as a mean similarity.
    state: of the source when it was read, as `photos.state_of` has it.
    """

    photos: Photos
    whole: Grouping
    suggested: float
    state: str

    @cached_property
    def digest(self) -> str:
        """What distinguishes these photos from those of any other review, for caches of their pictures."""
        names = "\0".join(self.photos.names)
        return blake2b(names.encode(errors="surrogatepass"), digest_size=8).hexdigest()

    def at(self, fineness: float | None) -> FoundGroups:
        """The groups at a level from 0 (coarse) to 1 (fine); None: as suggested."""
        return self.whole.at(self.suggested if fineness is None else self.whole.level_of(fineness))

    @cached_property
    def stops(self) -> Sequence[tuple[float, int]]:
        """Levels from 0 to 1 with their numbers of groups, in equal steps; the suggested one is among them."""
        levels = [step / STEPS for step in range(STEPS + 1)]
        suggested = self.whole.fineness_of(self.suggested)
        levels[round(suggested * STEPS)] = suggested
        return [(level, self.whole.count(self.whole.level_of(level))) for level in levels]


def check_geometry(geometry: Geometry) -> None:
    check(geometry == "sphere", "questions need vectors that are compared by their angle: use a model that does so")


def keep(place: Path, photos: Photos, whole: Grouping, state: str) -> None:
    """Write what was found, in place of what was found before."""
    check_geometry(photos.geometry)
    content: dict[str, Any] = {field.name: getattr(whole, field.name) for field in fields(whole)}
    content |= {
        "suggested": whole.suggested(),
        "model": photos.model,
        "fingerprint": photos.fingerprint,
        "state": state,
    }
    names = {"names": photos.names, "labels": [label or "" for label in photos.labels], "ids": photos.ids}
    content |= {name: np.array(part, str) for name, part in names.items()}
    place.mkdir(exist_ok=True)
    with whole_file(place / FOUND) as file:
        np.savez(file, **content)


def load(place: Path) -> KeptGroups:
    """What `keep` wrote; the folder may come from anywhere."""
    try:
        parts = read_arrays(place / FOUND)
        check(_fit(parts), "the arrays do not fit together")
        values: dict[str, Any] = {part.name: parts[part.name] for part in fields(Grouping)}
        whole = Grouping(**values | {name: float(values[name]) for name in values if not FORMS[name][1]})
    except (OSError, ValueError, KeyError):
        advice = "delete this file, and groups are found again; your answers and changes stay"
        raise UserError(f"'{place / FOUND}' is damaged or of an earlier version: {advice}") from None
    names, labels, ids = (parts[name].tolist() for name in ("names", "labels", "ids"))
    model, fingerprint, state = (str(parts[name]) for name in ("model", "fingerprint", "state"))
    given = [label or None for label in labels]
    photos = Photos(names, whole.vectors, given, "sphere", ids, model=model, fingerprint=fingerprint)
    return KeptGroups(photos, whole, float(parts["suggested"]), state)


def _fit(parts: Mapping[str, Any]) -> bool:
    """Whether all arrays have the types, the shapes and the numbers that groups of some photos have."""
    count = parts["names"].size
    lengths = {"n": count}
    for name, (kind, axes) in FORMS.items():
        part = parts[name]
        if not np.issubdtype(part.dtype, kind) or part.ndim != len(axes):
            return False
        if any(lengths.setdefault(axis, length) != length for axis, length in zip(axes, part.shape, strict=True)):
            return False
        lowest, highest = (-1 if name == "known" else 0, count - 1) if kind is np.int64 else (-FARTHEST, FARTHEST)
        if kind is not np.str_ and not ((part >= lowest) & (part <= highest)).all():  # nor is NaN
            return False
    ends = bool((parts["kept"] < parts["joined"]).all())  # following merges does: each leads to an earlier photo
    return ends and lengths["items"] in (0, count)


def is_begun(place: Path) -> bool:
    return (place / FOUND).is_file()
