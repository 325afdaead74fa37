"""What the page says beyond averages, all from `lookalike.evaluation`: queries, classes, pairs, spectrum.

Averages are over every query. What only has to be seen (confusions, distributions, curves over pairs, the spectrum) is
measured on a random part of the queries once all of them would take minutes; the page says so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookalike.evaluation import Result, Tally, evaluate, tally_pairs
from lookalike.evaluation.geometry import spectrum
from lookalike.evaluation.inputs import Codes
from lookalike.geometry import normalise
from lookalike.report.run.reading import Unseen

PAIRS = 60_000_000  # scores looked at for curves over pairs and for confusions
ROWS = 20_000  # vectors whose singular values are computed
METRICS = "recall@1,2,4,8,10,16,32,100 r_precision map@r mrr cmc"
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Measured:
    result: Result  # of every query
    sample: Result  # of the queries that confusions come from
    tally: Tally
    pairs_of: int  # queries behind the tally and the sample
    singular_values: Tensor
    spectrum_of: int
    shape: dict[str, float]  # rho, intra, inter


def measure(test: Unseen, seed: int = 0, progress: Progress | None = None) -> Measured:
    result = evaluate(
        test.embeddings, test.labels, gallery=test.gallery, gallery_labels=test.gallery_labels,
        categories=test.categories, normalise=test.geometry, metrics=METRICS, progress=progress,
    )  # fmt: skip
    rows = some(len(test.labels), max(256, PAIRS // test.gallery_size), seed)
    asked = _queries(test, rows)
    kept = some(len(test.all_labels), ROWS, seed)
    values = spectrum.singular_values(normalise(torch.from_numpy(test.vectors[kept]), test.geometry))
    return Measured(
        result=result,
        sample=result if len(rows) == len(test.labels) else evaluate(**asked, metrics="recall@1"),
        tally=tally_pairs(**asked),
        pairs_of=len(rows),
        singular_values=values,
        spectrum_of=len(kept),
        shape=_shape(test, values),
    )


def some(total: int, at_most: int, seed: int) -> Codes:
    """Row numbers: all, or so many of them, drawn without repetition, rising."""
    if total <= at_most:
        return np.arange(total)
    return np.sort(np.random.default_rng(seed).choice(total, at_most, replace=False)).astype(np.int64)


def _queries(test: Unseen, rows: Codes) -> dict[str, Any]:
    """The arguments of an evaluation of some queries against everything; a query does not meet itself."""
    every = len(rows) == len(test.labels)
    asked = {
        "embeddings": test.embeddings if every else test.embeddings[rows],
        "labels": test.labels if every else [test.labels[row] for row in rows],
        "normalise": test.geometry,
    }
    if every or test.gallery is not None:
        return asked | {"gallery": test.gallery, "gallery_labels": test.gallery_labels}
    places = (rows, np.arange(len(test.labels)))
    return asked | {"gallery": test.embeddings, "gallery_labels": test.labels, "ignore": places}


def _shape(test: Unseen, values: Tensor) -> dict[str, float]:
    """rho of the spectrum, and how tight classes are beside how far apart they lie."""
    found = {"rho": spectrum.of_spectrum(values, 1)} if len(values) > 1 else {}
    if len(set(test.all_labels)) == 1 or len(set(test.all_labels)) == len(test.all_labels):
        return found
    return found | dict(evaluate(**_queries(test, np.arange(len(test.labels))), metrics="intra inter intra_inter"))
