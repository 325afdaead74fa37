"""What the page says beyond averages, all from `lookalike.evaluation`: queries, classes, pairs, spectrum.

Averages are over every query. What only has to be seen (confusions, distributions, curves over pairs, the spectrum) is
measured on a random sample once everything would take minutes; the page says so.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookalike.evaluation import Result, Tally, evaluate, tally_pairs
from lookalike.evaluation.geometry import spectrum
from lookalike.evaluation.inputs import Codes
from lookalike.geometry import normalise
from lookalike.report.run.record import UnseenImages

PAIRS = 60_000_000  # scores computed for the curves over pairs and for confusions
ROWS = 20_000  # vectors whose singular values are computed
KS = (1, 2, 4, 8, 10, 16, 32, 100)
METRICS = (*(f"recall@{k}" for k in KS), "r_precision", "map@r", "mrr")


@dataclass(frozen=True)
class Measures:
    result: Result  # of every query
    sample: Result  # of the queries that confusions come from
    tally: Tally
    pairs_of: int  # queries behind the tally and the sample
    singular_values: Tensor
    spectrum_of: int
    shape: dict[str, float]  # rho, intra, inter


def measure(test: UnseenImages, known: Result | None = None, seed: int = 0, pairs: int = PAIRS) -> Measures:
    """`known` is what `evaluate` returned for these queries: then they are not ranked again.

    Curves over pairs and confusions come from at most `pairs` pairs, but from at least 256 queries.
    """
    every = _arguments(test, np.arange(len(test.labels)))
    if known is None or not _answers(known, test):
        known = evaluate(**every, categories=test.categories, metrics=METRICS)
    rows = some(len(test.labels), max(256, pairs // test.gallery_size), seed)
    sample = _arguments(test, rows)
    vectors = some(len(test.all_labels), ROWS, seed)
    values = spectrum.singular_values(normalise(torch.from_numpy(test.all_vectors[vectors]), test.geometry))
    rho = {"rho": spectrum.of_spectrum(values, 1)} if len(values) > 1 else {}
    classes = len(set(test.all_labels))
    several = 1 < classes < len(test.all_labels) and test.sets is None
    return Measures(
        result=known,
        sample=known if len(rows) == len(test.labels) else evaluate(**sample, metrics="recall@1"),
        tally=tally_pairs(**sample),
        pairs_of=len(rows),
        singular_values=values,
        spectrum_of=len(vectors),
        shape=rho | (dict(evaluate(**every, metrics="intra inter intra_inter")) if several else {}),
    )


def _answers(known: Result, test: UnseenImages) -> bool:
    """Whether a result is of these queries and has all that the page needs."""
    measured = all(name in known.per_query for name in METRICS) and known.nearest_wrong is not None
    grouped = test.categories is None or known.categories is not None
    return measured and grouped and list(map(str, known.labels)) == test.labels


def some(total: int, at_most: int, seed: int) -> Codes:
    """Row numbers: all of them, or a random choice of `at_most`, rising."""
    if total <= at_most:
        return np.arange(total)
    return np.sort(np.random.default_rng(seed).choice(total, at_most, replace=False)).astype(np.int64)


def _arguments(test: UnseenImages, rows: Codes) -> dict[str, Any]:
    """The arguments of an evaluation of some queries against everything; a query does not meet itself."""
    every = len(rows) == len(test.labels)
    count = len(test.labels)
    labels: Any = test.labels if test.sets is None else test.sets[:count]
    gallery_labels: Any = test.gallery_labels if test.sets is None or test.gallery is None else test.sets[count:]
    some_labels = [labels[row] for row in rows] if test.sets is None else labels[torch.from_numpy(rows)]
    queries = {
        "embeddings": test.embeddings if every else test.embeddings[rows],
        "labels": labels if every else some_labels,
        "normalise": test.geometry,
    }
    if every or test.gallery is not None:
        return queries | {"gallery": test.gallery, "gallery_labels": gallery_labels}
    return queries | {"gallery": test.embeddings, "gallery_labels": labels, "ignore": (rows, np.arange(count))}
