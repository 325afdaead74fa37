"""What a line of the journal of a review may say; the folder may come from anywhere.

Photos are named by their ids in an index, else by paths from where the folder is. Lines about photos that are not
there (any more) have no effect.

{"do": "same" | "different" | "unsure", "left": photo, "right": photo}: a judgement of two photos, and where that was
the answer to a question, what was seen of their groups ("seen"), the "chance" that they are one, and how many
photos that settled ("settles"). "same" merges the groups of both.
{"do": "name", "photos": […], "name": text}: these form the group of this name, or join it; "left" is then one of them
and "right" one that was there.
{"do": "split", "photos": […]}: they form a group of their own; "left" is one of them and "right" one that stays.
{"do": "out", "photos": […]}: they belong nowhere. {"do": "aside", "photos": […]}: nobody can tell what they are.
{"do": "level", "fineness": number}: the groups of another level. {"do": "undo"}: the last change is taken back.
{"do": "found", "count": number, "model": folder}: groups were found again in so many photos; "brought": how much
a new model improved, if there was one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lookalike.discover.mending import checked_name
from lookalike.errors import check
from lookalike.values import checked, dataclass_of

Entry = Mapping[str, Any]
FURTHEST = 1e10  # of what was seen, in units of the level
KINDS: Mapping[str, Any] = {
    "do": Literal["same", "different", "unsure", "name", "split", "out", "aside", "level", "undo", "found"],
    "photos": tuple[str, ...],
    "left": str,
    "right": str,
    "name": str,
    "fineness": float,
    "seen": tuple[float, float],
    "chance": float,
    "settles": int,
    "count": int,
    "model": str,
}
NEEDED: Mapping[str, tuple[str, ...]] = {
    "same": ("left", "right"),
    "different": ("left", "right"),
    "unsure": ("left", "right"),
    "name": ("photos", "name"),
    "split": ("photos",),
    "out": ("photos",),
    "aside": ("photos",),
    "level": ("fineness",),
    "undo": (),
    "found": ("count", "model"),
}


@dataclass(frozen=True)
class Brought:
    """How much a new model improved: R-precision `before` and `after`, and the interval of the difference.

    It is measured on `photos` of several `kinds` that were not learnt; of fewer than two kinds nothing is.
    """

    photos: int = 0
    kinds: int = 0
    before: float = 0.0
    after: float = 0.0
    low: float = 0.0
    high: float = 0.0

    def __str__(self) -> str:
        if self.kinds < 2:
            return (
                "There is nothing to judge this model by: name at least eight kinds, so that fit can keep some of "
                "them to test with."
            )
        verdict = "It is better." if self.low > 0 else "It is worse." if self.high < 0 else "That may be chance."
        return (
            f"Tried on {self.photos:,} photos of {self.kinds:,} named kinds that this model did not learn: of the most "
            f"similar photos of each, {self.after:.0%} are of its kind; before, {self.before:.0%} were. {verdict}"
        )


def check_line(entry: Entry) -> None:
    """Refuse what is not a line of a journal."""
    for name, value in entry.items():
        if name == "brought":
            dataclass_of(Brought, value, name)
            continue
        check(name in KINDS, f"there is no '{name}'")
        checked(KINDS[name], value, name)
    missing = {"do"} - entry.keys() or set(NEEDED[entry["do"]]) - entry.keys()
    check(not missing, f"it lacks {' and '.join(sorted(missing))}")
    parts = [name in entry for name in ("seen", "chance", "settles")]
    check(all(parts) or not any(parts), "an answer to a question has all of seen, chance and settles")
    sides = [entry[side] for side in ("left", "right") if side in entry]
    check(len(sides) in (0, 2) and len(set(sides)) == len(sides), "left and right are two different photos")
    check("name" not in entry or checked_name(entry["name"]) == entry["name"], "the name has blanks around it")
    check(0 <= entry.get("fineness", 0) <= 1 and 0 <= entry.get("chance", 0) <= 1, "shares are from 0 to 1")
    check(all(abs(number) <= FURTHEST for number in entry.get("seen", ())), f"what was seen is beyond {FURTHEST:.0e}")
