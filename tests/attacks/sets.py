"""Fuzzed sets: every sampler with random settings, and `evaluate` against plain loops over full rankings."""

import inspect
import math
from pathlib import Path

import numpy as np
import torch

from lookalike import evaluate, samplers
from lookalike.samplers import EmbeddingBank
from tests.attacks.batches import Draw, as_array
from tests.attacks.outcomes import Outcomes, right
from tests.evaluation.conftest import brute_force

SOME = [
    "recall@1",
    "recall@4",
    "precision@2",
    "f1_retrieval@2",
    "ndcg@4",
    "r_precision",
    "map@r",
    "map@c",
    "map",
    "mrr",
]
SETTINGS = {
    "batch_size": (1, 2, 4, 6, 8),
    "per_class": (1, 2, 3),
    "big_batch": (4, 8, 16),
    "batches": (None, 1, 3),
    "power": (0.0, 1.0, 3.0),
    "projection": (None, 1, 4),
    "softened": (False, True),
    "seed": (0, 7),
    "candidates": (1, 5),
    "categories_per_batch": (1, 2),
}


def samplers_hold(outcomes: Outcomes, first: int, count: int, _: Path) -> None:
    outcomes.attempt_each(first, count, sampler_trial)


def sampler_trial(number: int) -> None:
    draw = Draw(number)
    name = samplers.names()[number % len(samplers.names())]
    taken = inspect.signature(samplers.MEMBERS[name]).parameters
    count = draw.one((0, 1, 2, 5, 12, 40))
    labels = draw.labels(count)
    settings = {key: draw.one(values) for key, values in SETTINGS.items() if key in taken}
    if samplers.needs_bank(name):
        settings["bank"] = EmbeddingBank.of(draw.rows(count, 4, torch.float32))
    if "categories" in taken and draw.chance.random() < 0.9:
        settings["categories"] = labels % 2
    sampler = samplers.build(name, labels=draw.form_of(labels), **settings)
    batches = [list(batch) for batch, _ in zip(sampler, range(50), strict=False)]
    rows = [int(getattr(entry, "row", entry)) for batch in batches for entry in batch]
    right(all(0 <= row < count for row in rows), "a row that does not exist")
    right(len({len(batch) for batch in batches}) <= 1, "batches of different sizes")
    size = settings.get("batch_size")
    right(not batches or size is None or len(batches[0]) == size, f"batches of {len(batches[0]) if batches else 0}")


def evaluate_hold(outcomes: Outcomes, first: int, count: int, _: Path) -> None:
    outcomes.attempt_each(first, count, evaluate_trial)


def evaluate_trial(number: int) -> None:
    """Every metric of every query is that of loops over the full ranking."""
    draw = Draw(number)
    count, dim = draw.one((1, 2, 5, 9, 14)), draw.one((1, 2, 5))
    dtype = draw.one((torch.float16, torch.float32, torch.float64))
    vectors, labels = as_array(draw.rows(count, dim, dtype)), draw.labels(count).tolist()
    ties = draw.one(("pessimistic", "optimistic", "expected")) if count < 10 else "pessimistic"
    settings = {"ties": ties, "tie_tolerance": draw.one((1e-6, 1e-6, 1e-3))}
    more, known = {}, {}
    if draw.chance.random() < 0.4:
        others = draw.one((1, 4, 9))
        gallery, known = as_array(draw.rows(others, dim, dtype)), {"gallery_labels": draw.labels(others).tolist()}
        more = {"gallery": gallery}
    if draw.chance.random() < 0.3:
        hidden = np.array(
            [[draw.chance.random() < 0.3 for _ in range(len(more.get("gallery", vectors)))] for _ in labels]
        )
        settings["ignore"] = hidden
    scales = {float(np.abs(part).max(initial=0.0)) for part in (vectors, *more.values())}
    result = evaluate(
        laid_out(draw, vectors),
        draw.form_of(torch.tensor(labels)) if not known else labels,
        metrics=SOME,
        **more,
        **known,
        **settings,
    )
    right(all(math.isfinite(value) for value in result.values()), "a metric that is not a number")
    with np.errstate(all="ignore"):
        if near_a_tie(vectors, more.get("gallery", vectors), settings["tie_tolerance"]) or max(scales) > 1e30:
            return  # a loop in another order of sums may fall on the other side of the tolerance
        expected = brute_force(
            vectors,
            labels,
            more.get("gallery"),
            known.get("gallery_labels"),
            settings.get("ignore"),
            ties,
            settings["tie_tolerance"],
        )
    for name in SOME:
        if not np.allclose(result.per_query[name], expected[name], atol=1e-9, equal_nan=True):
            right(False, f"{name}: {result.per_query[name].tolist()} is not {expected[name]}")


def laid_out(draw: Draw, vectors: np.ndarray):
    """The same numbers in another order of bytes or strides, or as a tensor."""
    form = draw.one(("plain", "big-endian", "reversed", "fortran", "read-only", "tensor"))
    if form == "big-endian":
        return vectors.astype(vectors.dtype.newbyteorder(">"))
    if form == "reversed":
        return np.ascontiguousarray(vectors[::-1])[::-1]
    if form == "fortran":
        return np.asfortranarray(vectors)
    if form == "read-only":
        vectors = vectors.copy()
        vectors.flags.writeable = False
    return torch.tensor(vectors) if form == "tensor" else vectors


def near_a_tie(queries: np.ndarray, gallery: np.ndarray, tolerance: float) -> bool:
    """Whether two scores of a query differ by the tolerance, up to rounding."""
    wide = [
        part.astype(np.float64) / np.maximum(np.abs(part).max(1, keepdims=True), 1e-300) for part in (queries, gallery)
    ]
    units = [
        (part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-300)).astype("f").astype("d")
        for part in wide
    ]
    scores = np.sort(units[0] @ units[1].T, axis=1)
    gaps = np.abs(scores[:, :, None] - scores[:, None, :])
    return bool((np.abs(gaps - tolerance) < 1e-3 * tolerance).any())
