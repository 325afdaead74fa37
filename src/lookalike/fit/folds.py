"""Folds of classes: each is judged by what was fitted to the others, so that every class judges.

Of few classes, a part that is held back is too small to choose by; all folds together are as large as can be.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Integer
from torch import Tensor

from lookalike.evaluation import Result, evaluate

FEW = 100  # classes, below which folds judge
MOST, IN_SHORT = 4, 2  # folds; the latter in runs of less than
SHORT = 5.0  # minutes
# the rows of the other folds, and of this one -> vectors of this one, by the name of what was fitted
Fitted = Callable[[Bool[Tensor, " n"], Bool[Tensor, " n"]], Mapping[str, Tensor]]


def fold_count(classes: int, minutes: float | None = None) -> int:
    """How many folds judge so many classes; each has two or more, and 1 means none.

    >>> [fold_count(classes) for classes in (3, 5, 9, 99, 100)]
    [1, 2, 4, 4, 1]
    """
    most = IN_SHORT if minutes is not None and minutes < SHORT else MOST
    return min(most, classes // 2) if 4 <= classes < FEW else 1


def judge_by_folds(
    labels: Integer[Tensor, " n"],
    count: int,
    seed: int,
    vectors: Fitted,
    metrics: Sequence[str],
    judging: Bool[Tensor, " n"] | None = None,
) -> dict[str, Result]:
    """One result over all folds for every name; a query is compared with the images of its own fold.

    Only images that are `judging` are queries or compared with; a class without any is in no fold, and always teaches.
    """
    judges = torch.ones(len(labels), dtype=torch.bool) if judging is None else judging
    classes, sizes = torch.unique(labels[judges], return_counts=True)
    order = torch.randperm(len(sizes), generator=torch.Generator().manual_seed(seed))
    order = order[torch.argsort((sizes[order] == 1).int(), stable=True)]  # those with pairs are dealt out first
    dealt = torch.empty_like(order)
    dealt[order] = torch.arange(len(order)) % count
    fold = torch.full((int(labels.max()) + 1,), -1).scatter(0, classes, dealt)[labels]
    parts: dict[str, list[Result]] = {}
    for number in range(count):
        inside = judges & (fold == number)
        for name, points in vectors(fold != number, inside).items():
            result = evaluate(points, labels[inside], metrics=tuple(metrics), normalise="sphere")
            parts.setdefault(name, []).append(result)
    return {name: _merged(results) for name, results in parts.items() if len(results) == count}


def _merged(results: Sequence[Result]) -> Result:
    queries = {name: np.concatenate([result.per_query[name] for result in results]) for name in results[0]}
    means = {name: float(np.nanmean(values)) for name, values in queries.items()}
    return Result(means, queries, [label for result in results for label in result.labels], {})
