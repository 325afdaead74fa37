"""PKU VehicleID: three test lists, small, medium and large [math F.12, G].

FastAP searches each list leave-one-out (`gallery = "all"`). The classic protocol draws one image of every vehicle as
the gallery, takes the others as queries, and repeats that ten times (`gallery = "one_per_class"`).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from lookalike.data import Dataset
from lookalike.data.formats import vehicle_id as lists
from lookalike.errors import check
from lookalike.evaluation import Result, evaluate
from lookalike.evaluation.query_draw import one_per_class
from lookalike.protocols import class_disjoint
from lookalike.protocols.class_disjoint import Parts
from lookalike.protocols.unseen import Judged


def check_dataset(dataset: Dataset) -> None:
    check(
        dataset.name == "vehicle_id" and dataset.root is not None,
        f"the protocol vehicle_id works on PKU VehicleID only, not on {dataset.name}: set protocol.name=class_disjoint",
    )


def parts(dataset: Dataset, test: float, validation: float, seed: int = 0) -> Parts:
    """The test images are the list that the dataset was loaded with, so that the share `test` is not used; `others` are
    the two other lists."""
    check_dataset(dataset)
    assert dataset.root is not None
    divided = class_disjoint.parts(dataset, test, validation, seed)
    others = []
    for size, vehicles in lists.VEHICLES.items():
        if vehicles != divided.test.present:
            listed = lists.vehicle_id(dataset.root, size).where(split="test")
            others.append((f"{size} list, {vehicles:,} vehicles", listed))
    return divided._replace(others=tuple(others))


def judge_repeats(
    name: str,
    role: str,
    embeddings: Float[Tensor, "n d"],
    dataset: Dataset,
    geometry: Any,
    metrics: Iterable[str] = (),
    repeats: int = 10,
) -> Judged:
    """The classic protocol: the mean over `repeats` random galleries of one image per vehicle. The value of an image is
    its mean over the repeats in which it was a query."""
    check(repeats > 0, f"protocol.repeats must be at least 1, not {repeats}")
    labels = np.array(dataset.label_names, dtype=object)[dataset.labels.numpy()]
    sums: dict[str, np.ndarray] = {}
    times_query = np.zeros(len(labels))
    results = []
    for repeat in range(repeats):
        queries, gallery = one_per_class(labels, seed=repeat)
        result = evaluate(
            embeddings[queries],
            labels[queries],
            gallery=embeddings[gallery],
            gallery_labels=labels[gallery],
            metrics=tuple(metrics) or None,
            normalise=geometry,
        )
        for metric, values in result.per_query.items():
            sums.setdefault(metric, np.zeros(len(labels)))[queries] += values
        times_query[queries] += 1
        results.append(result)
    with np.errstate(invalid="ignore"):  # an image that was never a query has no value
        per_query = {metric: total / times_query for metric, total in sums.items()}
    means = {metric: float(np.mean([result[metric] for result in results])) for metric in results[0]}
    facts = results[0].facts | {"repeats": repeats}
    return Judged(name, role, embeddings, Result(means, per_query, list(labels), facts))
