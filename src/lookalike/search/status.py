"""An index in a few lines."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from lookalike.search.filters import Condition
from lookalike.search.index import Index
from lookalike.search.items import Mark
from lookalike.search.stores.copying import FACT as COPY
from lookalike.search.upgrading.maps import kept_choice

SIGNED = 5  # people that are named
UNFINISHED = "incomplete: lookalike upgrade, or lookalike index --new-generation, continues where it was stopped"


def describe(index: Index) -> dict[str, Any]:
    """Items, classes, columns, generations, calibration and its age, sizes on disk."""
    store, identity, calibration = index.store, index.identity, index.calibration
    items = store.count()
    upcoming = store.generations.upcoming()
    content: dict[str, Any] = {
        "items": items,
        "classes": store.summary(["label"]).columns["label"].distinct,
        "columns": dict(store.columns()),
        "things": _things(index),
        "unlabelled": store.count((Condition("label", "=", (None,)),)),
        "dimensions": identity.dim,
        "geometry": identity.geometry,
        "model": identity.fingerprint or "none: vectors made elsewhere",
        "generation": identity.generation,
        "upcoming": None if upcoming is None else f"generation {upcoming.generation}, {UNFINISHED}",
        "calibration": "none: run lookalike calibrate",
        "promise": index.promise,
        "marks": _marks(store.marks.every()),
        "switched on": ", ".join(index.quality.names) or "nothing",
    } | store.describe()
    mapped = store.generations.mapped_count()
    if mapped:
        content["upgrade"] = _upgrade(index, mapped, items)
    if store.documents.read(COPY) is not None:
        content["copy"] = "incomplete: run lookalike copy again"
    if calibration is not None:
        run = f" (by the run that made the model, among {calibration.items:,} test photos)"
        origin = run if calibration.source == "run" else ""
        content["calibration"] = (
            f"{calibration.target:.0%} precision, {calibration.date}{origin}, {_age(calibration.date)}"
        )
        content["stale"] = index.stale
    return content


def _upgrade(index: Index, mapped: int, items: int) -> str:
    """How many vectors are mapped still, how well, and what to do about it."""
    choice = kept_choice(index.store)
    if choice is None:
        return f"done; {mapped:,} items whose pictures are gone keep a mapped vector"
    kept = f"{choice.kind} kept {choice.share:.1%} of the new model's recall@10 on a sample of {choice.sample:,}"
    return f"{items - mapped:,} of {items:,} items embedded, the others mapped ({kept}): lookalike upgrade continues"


def _things(index: Index) -> str | None:
    """How many there are, by which column, and how many of its photos rank each."""
    column, pooled, store = index.thing, index.quality.pooled, index.store
    if column is None:
        return None
    said, alone = store.summary([column]).columns[column], store.count((Condition(column, "=", (None,)),))
    # the different ones of a column of numbers are not in its summary
    count = said.distinct if said.kind == "text" else len({item.value(column) for item in store.listed()} - {None})
    parts = [f"{count:,} thing{'s' * (count != 1)} by '{column}'"]
    if alone:
        parts.append(f"{alone:,} photo{'s' * (alone != 1)} belong{'s' * (alone == 1)} to none")
    parts.append(f"each is ranked by its best {'photo' if pooled == 1 else f'{pooled} photos'}")
    return "; ".join(parts)


def _marks(marks: Sequence[Mark]) -> str:
    """How many are right and wrong, by whom, and when the last one was made."""
    if not marks:
        return "none: people can mark hits on the page of lookalike serve"
    right, people = sum(mark.right for mark in marks), Counter(mark.by or "unsigned" for mark in marks)
    names = ", ".join(f"{name} {count:,}" for name, count in people.most_common(SIGNED))
    last = max(marks, key=lambda mark: mark.at or 0.0)
    when = datetime.fromtimestamp(last.at or 0.0, UTC).isoformat(sep=" ", timespec="minutes")
    return f"{right:,} right, {len(marks) - right:,} wrong ({names}); the last by {last.by or 'nobody named'}, {when}"


def _age(date: str) -> str:
    """How long ago that was, in words."""
    try:
        then = datetime.fromisoformat(date)
    except ValueError:
        return "of an unknown day"
    days = (datetime.now(UTC) - (then if then.tzinfo else then.replace(tzinfo=UTC))).days
    return "today" if days < 1 else f"{days:,} day{'s' * (days > 1)} old"
