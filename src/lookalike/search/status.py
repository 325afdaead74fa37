"""An index in a few lines."""

from datetime import UTC, datetime
from typing import Any

from lookalike.search.filters import Condition
from lookalike.search.index import Index
from lookalike.search.stores.copying import FACT as COPY


def describe(index: Index) -> dict[str, Any]:
    """Items, classes, columns, generations, calibration and its age, sizes on disk."""
    store, identity, calibration = index.store, index.identity, index.calibration
    items = store.count()
    upcoming = store.generations.upcoming()
    content: dict[str, Any] = {
        "items": items,
        "classes": store.summary(["label"]).columns["label"].distinct,
        "columns": dict(store.columns()),
        "unlabelled": store.count((Condition("label", "=", (None,)),)),
        "dimensions": identity.dim,
        "geometry": identity.geometry,
        "model": identity.fingerprint or "none: vectors made elsewhere",
        "generation": identity.generation,
        "upcoming": None if upcoming is None else f"generation {upcoming.generation}, not complete yet",
        "calibration": "none: lookalike calibrate makes one",
        "switched on": ", ".join(index.quality.names) or "nothing",
    } | store.describe()
    if store.documents.read(COPY) is not None:
        content["copy"] = "not complete: run lookalike copy again"
    if calibration is not None:
        origin = " (by the run that made the model)" if calibration.source == "run" else ""
        content["calibration"] = (
            f"{calibration.target:.0%} precision, {calibration.date}{origin}, {_age(calibration.date)}"
        )
        content["promise"] = calibration.promise
        content["stale"] = calibration.stale(items, identity.generation)
    return content


def _age(date: str) -> str:
    """How long ago that was, in words."""
    then = datetime.fromisoformat(date)
    days = (datetime.now(UTC) - (then if then.tzinfo else then.replace(tzinfo=UTC))).days
    return "today" if days < 1 else f"{days:,} day{'s' * (days > 1)} old"
