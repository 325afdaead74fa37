"""Which images are queries and which are the gallery, where a protocol draws them at random [math F.12]."""

from typing import Any

import numpy as np

from lookalike.errors import check
from lookalike.evaluation.inputs import Codes
from lookalike.labels import encode, values_of


def one_per_class(labels: Any, seed: int = 0) -> tuple[Codes, Codes]:
    """The classic VehicleID protocol: one random image per identity is the gallery, the others are queries.

    Returns the rows of the queries and of the gallery, of `labels` the identities, drawn by `seed`; ten seeds give the
    ten repeats. (The default protocol, that of FastAP, is leave-one-out: `evaluate` without a gallery.)

    >>> queries, gallery = one_per_class(["a", "a", "b", "b", "b"])
    >>> len(queries), len(gallery)
    (3, 2)
    """
    check(len(labels) > 0, "there are no labels to split")
    (codes,), _ = encode(values_of(labels, "labels", len(labels)))
    shuffled = np.random.default_rng(seed).permutation(len(codes))
    _, first = np.unique(codes[shuffled], return_index=True)
    gallery = np.sort(shuffled[first])
    return np.setdiff1d(np.arange(len(codes)), gallery), gallery
