"""What the page says beyond averages, all from `lookalike.evaluation`: queries, classes, pairs, spectrum.

Averages are over every query. What only has to be seen (confusions, distributions, curves over pairs, the spectrum) is
measured on a random part of the queries once all of them would take minutes; the page says so.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lookalike.evaluation import Result, evaluate, pair_curves
from lookalike.evaluation.engine.question import ask, read_ignore
from lookalike.evaluation.evaluate import ask_all
from lookalike.evaluation.geometry import spectrum
from lookalike.evaluation.inputs import Codes
from lookalike.evaluation.sets import Sets, read_sets
from lookalike.evaluation.whole_set import measure_geometry
from lookalike.report.run.reading import Unseen

PAIRS = 60_000_000  # scores looked at for curves over pairs and for confusions
ROWS = 20_000  # vectors whose singular values are computed
METRICS = "recall@1,2,4,8,10,16,32,100 r_precision map@r mrr cmc"
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Measured:
    result: Result  # of every query
    sample: Result  # of the queries that confusions come from
    tally: pair_curves.Tally
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
    sets, ignore = _asked(test, rows)
    whole = read_sets(test.embeddings, test.labels, test.gallery, test.gallery_labels, test.geometry)
    vectors, codes = whole.everything()
    kept = some(len(vectors), ROWS, seed)
    values = spectrum.singular_values(vectors[torch.from_numpy(kept)])
    return Measured(
        result=result,
        sample=result if len(rows) == len(test.labels) else _sampled(test, rows),
        tally=tally(sets, ignore),
        pairs_of=len(rows),
        singular_values=values,
        spectrum_of=len(kept),
        shape=shape(values, vectors, codes),
    )


def some(total: int, at_most: int, seed: int) -> Codes:
    """Row numbers: all, or so many of them, drawn without repetition, rising."""
    if total <= at_most:
        return np.arange(total)
    return np.sort(np.random.default_rng(seed).choice(total, at_most, replace=False)).astype(np.int64)


def _asked(test: Unseen, rows: Codes) -> tuple[Sets, object]:
    """The queries of `rows` against everything; a query that is also in the gallery does not meet itself."""
    if len(rows) == len(test.labels):
        return read_sets(test.embeddings, test.labels, test.gallery, test.gallery_labels, test.geometry), None
    labels = [test.labels[row] for row in rows]
    if test.gallery is not None:
        return read_sets(test.embeddings[rows], labels, test.gallery, test.gallery_labels, test.geometry), None
    sets = read_sets(test.embeddings[rows], labels, test.embeddings, test.labels, test.geometry)
    return sets, (rows, np.arange(len(test.labels)))


def _sampled(test: Unseen, rows: Codes) -> Result:
    _, ignore = _asked(test, rows)
    gallery, names = (
        (test.embeddings, test.labels) if test.gallery is None else (test.gallery, test.gallery_labels or [])
    )
    return evaluate(
        test.embeddings[rows], [test.labels[row] for row in rows], gallery=gallery, gallery_labels=names,
        normalise=test.geometry, metrics="recall@1", ignore=ignore,
    )  # fmt: skip


def tally(sets: Sets, ignore: object) -> pair_curves.Tally:
    """Numbers of same-class and other pairs above every threshold.

    `evaluate(metrics="pr")` makes the same and keeps a thousand points of it; where one pair in thousands is of the
    same class, none of those would lie on the part of the curve that matters.
    """
    items = sets.query_codes if sets.gallery_codes is None else sets.gallery_codes
    hidden = read_ignore(ignore, len(sets.query_codes), len(items), sets.gallery is None)
    question = ask(sets.query_codes, sets.gallery_codes, hidden)
    everyone = question.gallery if question.alone else np.arange(len(sets.query_codes))
    complete = ask_all(question, everyone)
    gallery = sets.space(question.gallery, of_gallery=True)
    queries = gallery if question.alone else sets.space(everyone, of_gallery=False)
    codes = (torch.from_numpy(sets.query_codes[everyone]), torch.from_numpy(items[question.gallery]))
    blocks = pair_curves.pairs(complete, codes, queries, gallery)
    return pair_curves.tally(blocks, len(everyone) * len(items), -1.0 if gallery.spherical else -2.0)


def shape(values: Tensor, vectors: Tensor, codes: Codes) -> dict[str, float]:
    """rho of the spectrum, and how tight classes are beside how far apart they lie."""
    found = {"rho": spectrum.of_spectrum(values, 1)} if len(values) > 1 else {}
    several = len(set(codes.tolist())) > 1 and int(np.bincount(codes).max()) > 1
    return found | (measure_geometry(["intra", "inter", "intra_inter"], vectors, codes) if several else {})
