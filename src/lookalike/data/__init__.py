"""Data sets: a folder, a table, arrays, the built-in glyphs and the official sets; splits, images, audit.

`load("glyphs")`, `load("photos/")`, `load("table.csv")`, `load("cub200=/data/CUB_200_2011")` all give a `Dataset`.

Throughout, `dataset` is one of them, `threads` are how many read its images, and `progress(done, total)` is called.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lookalike import catalog
from lookalike.data.audit.audit import audit, readable
from lookalike.data.audit.duplicates import near_duplicate_groups
from lookalike.data.dataset import Dataset, Problem
from lookalike.data.formats import cars196 as _cars196
from lookalike.data.formats import cub200 as _cub200
from lookalike.data.formats import inshop as _inshop
from lookalike.data.formats import omniglot as _omniglot
from lookalike.data.formats import sop as _sop
from lookalike.data.formats import vehicle_id as _vehicle_id
from lookalike.data.formats.arrays import arrays
from lookalike.data.formats.folder import folder, linked_folder
from lookalike.data.formats.glyphs import glyphs
from lookalike.data.formats.pairs import is_pairs, pairs
from lookalike.data.formats.table import KINDS, table
from lookalike.data.images.augment import Augmentation, preset
from lookalike.data.images.decoded_cache import decoded
from lookalike.data.images.view import AugmentedImages, Tickets, loader
from lookalike.data.splits import class_disjoint, class_folds, halves, last_classes_validate
from lookalike.errors import UserError, check, unknown

MEMBERS: dict[str, Callable[..., Dataset]] = {
    "arrays": arrays,
    "cars196": _cars196.cars196,
    "cub200": _cub200.cub200,
    "folder": folder,
    "glyphs": glyphs,
    "inshop": _inshop.inshop,
    "linked_folder": linked_folder,
    "omniglot": _omniglot.omniglot,
    "pairs": pairs,
    "sop": _sop.sop,
    "table": table,
    "vehicle_id": _vehicle_id.vehicle_id,
}
_OFFICIAL = (_cars196, _cub200, _inshop, _omniglot, _sop, _vehicle_id)


def names() -> list[str]:
    """The data sets that `build` knows."""
    return sorted(MEMBERS)


def build(name: str, **settings: Any) -> Dataset:
    """The data set called `name`; a misspelt name or setting is refused with the nearest one."""
    return catalog.build("dataset", MEMBERS, name, settings)


def load(source: str | Path, **settings: Any) -> Dataset:
    """A data set from `source`: a name (glyphs), name=folder (cub200=birds/), a table, or a folder, official or not.

    >>> load("glyfs")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    lookalike.errors.UserError: unknown dataset 'glyfs': did you mean 'glyphs'? ...
    """
    name, equals, location = source.partition("=") if isinstance(source, str) else ("", "", "")
    if equals and name in MEMBERS:
        return build(name, **{"path" if name in ("table", "pairs") else "root": location}, **settings)
    if name in MEMBERS:
        located = name == "glyphs" or settings.keys() & {"root", "path", "images"}
        check(bool(located), f"'{name}' must say where it is: write {name}=FOLDER")
        return build(name, **settings)
    path = Path(source).expanduser()
    if path.is_file():
        return build("pairs" if is_pairs(path) else "table", path=path, **settings)
    if path.is_dir():
        return build(layout_of(path), root=path, **settings)
    if "/" not in str(source) and path.suffix.lower() not in KINDS:
        raise unknown("dataset", str(source), [*MEMBERS, "or a folder or table"])
    raise UserError(f"there is no folder or table '{path}', and no data set has that name: see lookalike list data")


def layout_of(root: Path) -> str:
    """The official data set whose layout a folder has; `folder` if it has none."""
    for module in _OFFICIAL:
        if any((root / marker).exists() for marker in module.MARKERS):
            return module.__name__.rsplit(".", 1)[1]
    return "folder"


__all__ = [
    "MEMBERS",
    "Augmentation",
    "AugmentedImages",
    "Dataset",
    "Problem",
    "Tickets",
    "arrays",
    "audit",
    "build",
    "class_disjoint",
    "class_folds",
    "decoded",
    "folder",
    "glyphs",
    "halves",
    "last_classes_validate",
    "linked_folder",
    "load",
    "loader",
    "names",
    "near_duplicate_groups",
    "pairs",
    "preset",
    "readable",
    "table",
]
