"""Labelled images asked for what they are, and the answers; also against each other, as the test classes of a run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from lookalike.search.calibration.evidence import HITS, Evidence, evidence, mutual_similarities
from lookalike.search.filters import Condition
from lookalike.search.items import Vectors

TOGETHER = 64  # queries scored at once
LABELLED = (Condition("label", "!=", (None,)),)


@dataclass(frozen=True)
class Trials:
    """Answers to queries of known class: the similarity of the best hit, the two classes, and what the hits say."""

    similarities: Float64[np.ndarray, " n"]
    classes: Sequence[str]  # of the queries
    answers: Sequence[str]  # the classes of their best hits
    present: Bool[np.ndarray, " n"]  # whether the class was there to be found
    evidence: Evidence | None = None

    @property
    def right(self) -> Bool[np.ndarray, " n"]:
        return np.array([query == answer for query, answer in zip(self.classes, self.answers, strict=True)], bool)


@dataclass(frozen=True)
class Row:
    """One trial."""

    similarity: float
    asked: str
    answered: str
    present: bool
    evidence: Float64[np.ndarray, " evidence"]


def as_trials(rows: Sequence[Row]) -> Trials:
    return Trials(
        np.array([row.similarity for row in rows]),
        [row.asked for row in rows],
        [row.answered for row in rows],
        np.array([row.present for row in rows], bool),
        np.stack([row.evidence for row in rows]),
    )


def among_themselves(vectors: Vectors, labels: Sequence[str], most: int | None = None) -> Trials:
    """Every image (or `most`, evenly spread) asked against the others on the sphere, with its class and without."""
    names, codes = np.unique(np.array(labels, dtype=object).astype(str), return_inverse=True)
    rows: list[Row] = []
    exact = vectors.astype(np.float64)
    chosen = np.arange(len(exact)) if most is None else np.unique(np.linspace(0, len(exact) - 1, most).astype(int))
    for start in range(0, len(chosen), TOGETHER):
        queries = chosen[start : start + TOGETHER]
        scores = exact[queries] @ exact.T
        scores[np.arange(len(queries)), queries] = -np.inf
        own = codes[queries, None] == codes[None]
        for present, left in ((True, scores), (False, np.where(own, -np.inf, scores))):
            answerable = own.sum(1) > (1 if present else 0)
            for row, near, read in _answers(exact, codes, left):
                if answerable[row]:
                    label, answer = str(names[codes[queries[row]]]), str(names[codes[near]])
                    rows.append(Row(float(left[row, near]), label, answer, present, read))
    return as_trials(rows)


def _answers(
    vectors: Float64[np.ndarray, "n d"], codes: Int64[np.ndarray, " n"], scores: Float64[np.ndarray, "queries n"]
) -> Iterator[tuple[int, int, Float64[np.ndarray, " evidence"]]]:
    """Each query that has an answer, with its best hit and what the first hits say."""
    some = np.sort(np.argpartition(-scores, min(HITS, scores.shape[1]) - 1, axis=1)[:, :HITS], axis=1)
    order = np.argsort(-np.take_along_axis(scores, some, axis=1), axis=1, kind="stable")
    nearest = np.take_along_axis(some, order, axis=1)
    similarities = np.take_along_axis(scores, nearest, axis=1)
    there = np.isfinite(similarities).sum(1)
    for number in np.unique(there[there > 0]):
        places = np.flatnonzero(there == number)
        hits = nearest[places, :number]
        read = evidence(similarities[places, :number], codes[hits], mutual_similarities(vectors[hits], "sphere"))
        yield from zip(places.tolist(), hits[:, 0].tolist(), read, strict=True)
