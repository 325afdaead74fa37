"""The table of found groups, which `lookalike fit` reads: one row per photo.

`label` is a known class, or the name of a new group; `verdict` is "known" (the label came with the photo), "named" (a
person named it on the page), "joined" (it was found in a known class, or its group was merged with a named one),
"found" (in a new group), or "unknown" (in none, without a label; `fit` leaves it out).
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lookalike.data.formats.table import cells, guarded
from lookalike.discover.grouping import APART, FoundGroups
from lookalike.discover.photos import Photos
from lookalike.errors import UserError, check
from lookalike.files import printable, whole_file

COLUMNS = ("path", "label", "verdict", "similarity", "nearer")
NEW = "group"


@dataclass(frozen=True)
class GroupedPhoto:
    """A photo in a table of groups; `nearer`: by how much it is more similar to its own group than to the next."""

    path: str
    label: str
    verdict: str
    similarity: float
    nearer: float


def rows_of(photos: Photos, found: FoundGroups) -> list[GroupedPhoto]:
    """One row per photo, in the order of the photos."""
    names, classes = names_of(photos, found), set(photos.classes)
    rows = []
    for place, group in enumerate(found.groups.tolist()):
        own, label = photos.labels[place], names.get(group, "")
        new = label.startswith(f"{NEW} ") and label not in classes
        verdict = "known" if own is not None else "unknown" if group == APART else "found" if new else "joined"
        near = min(float(found.nearer[place]), 9.0)  # no other group is near
        rows.append(GroupedPhoto(photos.names[place], own or label, verdict, float(found.similarity[place]), near))
    return rows


def names_of(photos: Photos, found: FoundGroups) -> dict[int, str]:
    """The known class of each group, or else a numbered name that no class has."""
    result = {
        group: label
        for group, label in zip(found.groups.tolist(), photos.labels, strict=True)
        if label is not None and group != APART
    }
    taken, number = set(photos.classes), 0
    for group in range(found.count):
        if group not in result:
            number += 1
            while f"{NEW} {number}" in taken:
                number += 1
            result[group] = f"{NEW} {number}"
    return result


def write(rows: Sequence[GroupedPhoto], place: Path) -> None:
    with whole_file(place, "w") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for row in rows:
            names = [guarded(printable(row.path)), guarded(printable(row.label)), row.verdict]
            table.writerow([*names, f"{row.similarity:.6f}", f"{row.nearer:.6f}"])


def is_table(place: Path) -> bool:
    """Whether a table was written by `write`, or will be; other tables only name photos."""
    return place.suffix == ".csv" and (not place.is_file() or tuple(next(cells(place), [])) == COLUMNS)


def read(place: Path) -> list[GroupedPhoto]:
    """The rows of a table that `write` wrote."""
    check(place.is_file(), f"there is no table '{place}': write one with lookalike discover PHOTOS --out {place.name}")
    lines = cells(place)
    header = next(lines, [])
    check(tuple(header) == COLUMNS, f"'{place.name}' is no table of lookalike discover: its first line is {header}")
    try:
        return [GroupedPhoto(line[0], line[1], line[2], float(line[3]), float(line[4])) for line in lines if line]
    except (IndexError, TypeError, ValueError):
        raise UserError(f"'{place.name}' is damaged: write it again with lookalike discover") from None
