"""The calibration that a run makes of its own test classes, so that an index made from it starts with one."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from lookalike.errors import UserError
from lookalike.models import Model
from lookalike.search.calibration.foreign import Familiar, pictures
from lookalike.search.calibration.thresholds import Calibration, calibrate
from lookalike.search.calibration.trials import among_themselves, spread
from lookalike.search.items import Vectors

MOST = 1000  # images that are asked


def calibrate_run(model: Model, vectors: Vectors, labels: Sequence[str]) -> dict[str, Any] | None:
    """As JSON, with the fingerprint of the model; None where the test classes cannot tell, or there are no cosines."""
    if model.geometry != "sphere":
        return None
    today = datetime.now(UTC).date().isoformat()
    try:
        trials, some = among_themselves(vectors, labels, MOST), spread(len(vectors), MOST)
        names = np.unique(np.array(labels, dtype=object).astype(str), return_inverse=True)[1]
        outside = model.encode(pictures()).numpy()
        familiar = Familiar.of(vectors[some], names[some], outside)
        calibration = calibrate(trials, familiar=familiar, items=len(vectors), generation=1, date=today, source="run")
    except UserError:
        return None
    return calibration.as_json() | {"fingerprint": model.fingerprint}


def promise_of_run(content: dict[str, Any]) -> str:
    """What an index made from the run promises."""
    return Calibration.from_json({name: value for name, value in content.items() if name != "fingerprint"}).promise
