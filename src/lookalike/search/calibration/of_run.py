"""The calibration that a run makes of its own test classes, so that an index made from it starts with one."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from lookalike.errors import UserError
from lookalike.models import Model
from lookalike.search.calibration.thresholds import calibrate
from lookalike.search.calibration.trials import among_themselves
from lookalike.search.items import Vectors

TARGET = 0.95
MOST = 2000  # images that are asked


def calibrate_run(model: Model, vectors: Vectors, labels: Sequence[str]) -> dict[str, Any] | None:
    """As JSON, with the fingerprint of the model; None where the test classes cannot tell, or there are no cosines."""
    if model.geometry != "sphere":
        return None
    trials = among_themselves(vectors, labels, MOST)
    today = datetime.now(UTC).date().isoformat()
    try:
        calibration = calibrate(trials, TARGET, items=len(vectors), generation=1, date=today, source="run")
    except UserError:
        return None
    return calibration.as_json() | {"fingerprint": model.fingerprint}
