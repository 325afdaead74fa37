"""The fair protocol: several models, each validated on another range of the train classes, tested as one.

Musgrave, Belongie, Lim: A Metric Learning Reality Check, ECCV 2020, as the chance-constraints paper runs it
[math G.2, F.13]. The train classes are cut into contiguous ranges; model j trains on all ranges but one and stops by
that one. On test, the mean of the models' figures and their concatenated embeddings are reported. Ablations: three
ranges, one model.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.data import Dataset, class_folds, halves
from lookalike.errors import check
from lookalike.geometry import Geometry, normalise
from lookalike.protocols.class_disjoint import LEAST, Parts, has, of_splits, usable


def parts(dataset: Dataset, folds: int, fold: int) -> Parts:
    """The `fold`, 1 … `folds`, of a dataset; without splits of its own, the second half of the classes is the test set.

    >>> from lookalike.data import arrays
    >>> ten = arrays(torch.zeros(40, 4, 4, dtype=torch.uint8), torch.arange(40) // 2)
    >>> [part.present for part in parts(ten, folds=4, fold=1)[:3]]
    [7, 3, 10]
    """
    check(1 <= fold <= folds, f"protocol.fold must be 1 to {folds}, not {fold}")
    whole = dataset if has(dataset, "train") and has(dataset, "test") else halves(dataset)
    assert whole.splits is not None
    whole = replace(
        whole, splits=torch.where(whole.splits == 1, 0, whole.splits)
    )  # its validation classes train as well
    divided = of_splits(class_folds(whole, folds)[fold - 1])
    held = 0 if divided.validation is None else usable(divided.validation)
    check(
        held >= LEAST,
        f"{dataset.name}: with {folds} folds, this one has fewer than {LEAST} classes with two images to validate on: "
        "set protocol.folds lower, or add classes",
    )
    return divided


def side_by_side(embeddings: Sequence[Float[Tensor, "n d"]], geometry: Geometry) -> Float[Tensor, "n _"]:
    """The concatenated `embeddings` of several models: each normalised, then all together [math F.13].

    >>> side_by_side([torch.eye(2), torch.eye(2)], "sphere").shape
    torch.Size([2, 4])
    """
    rows = {len(part) for part in embeddings}
    check(len(rows) == 1, f"models embedded different numbers of test images ({sorted(rows)}): were images changed?")
    return normalise(torch.cat([normalise(part, geometry) for part in embeddings], 1), geometry)
