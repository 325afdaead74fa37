"""Find groups for the first time, or again by another model or from other photos; how much the new model improved.

That is measured on photos that it did not learn: those that its run kept to test with (`test.npz` beside the model), as
far as a person has named their kinds. For each of them, as many of the most similar photos are taken as there are
others of its kind, and the share of its kind among them counts (R-precision).
"""

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lookalike.discover import journal, kept
from lookalike.discover.grouping import Grouping
from lookalike.discover.kept import ANSWERS, LOCK
from lookalike.discover.lines import Brought
from lookalike.discover.photos import Photos
from lookalike.discover.session import ReviewSession
from lookalike.evaluation import compare, evaluate
from lookalike.files import lock, printable
from lookalike.runs import RunFolder
from lookalike.runs.embeddings import read_embeddings

METRIC = "r_precision"


def begin(place: Path, photos: Photos, whole: Grouping, state: str) -> None:
    """Save new groups; if there were some before, every answer and change stays, and the journal notes the new ones."""
    before = ReviewSession(place) if kept.is_begun(place) else None
    place.mkdir(exist_ok=True)
    with lock(place / LOCK):
        kept.keep(place, photos, whole, state)
        if before is not None or journal.entries(place / ANSWERS):
            line: dict[str, Any] = {"do": "found", "count": len(photos.names), "model": photos.model}
            if before is not None and photos.fingerprint not in ("", before.kept.photos.fingerprint):
                line["brought"] = asdict(measured(before, photos))
            journal.append(place / ANSWERS, line)
    ReviewSession(place).follow()


def measured(before: ReviewSession, photos: Photos) -> Brought:
    """How much better the model of `photos` is than the one before, on photos that it did not learn."""
    kinds = {row.path: row.label for row in before.labelled() if row.verdict in ("known", "named")}
    held = _held_out(Path(photos.model))
    rows = [row for row, name in enumerate(photos.names) if printable(name) in held and name in kinds]
    sizes = Counter(kinds[photos.names[row]] for row in rows)
    rows = [row for row in rows if sizes[kinds[photos.names[row]]] > 1]
    names = [photos.names[row] for row in rows]
    codes = np.unique([kinds[name] for name in names], return_inverse=True)[1] if names else np.empty(0, np.int64)
    if len(set(codes.tolist())) < 2:
        return Brought(len(names), len(set(codes.tolist())))
    place = {name: row for row, name in enumerate(before.kept.photos.names)}
    vectors = {"before": before.kept.whole.vectors[[place[name] for name in names]], "after": photos.vectors[rows]}
    labels = torch.from_numpy(codes)
    results = {
        name: evaluate(torch.from_numpy(each), labels, metrics=(METRIC,), normalise="sphere")
        for name, each in vectors.items()
    }
    gain = compare(results, [METRIC], over="classes").differences[1]
    shares = results["before"][METRIC], results["after"][METRIC]
    return Brought(len(rows), len(set(codes.tolist())), *shares, gain.low, gain.high)


def _held_out(model: Path) -> set[str]:
    """The photos that the run of a model tested with; none if it is not the model of a run."""
    file = RunFolder(model.parent).test
    if not file.is_file():
        return set()
    arrays = read_embeddings(file)
    return {path for name in ("paths", "gallery_paths") if name in arrays for path in arrays[name].tolist()}
