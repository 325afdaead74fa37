"""`evaluate`: every number of SPEC section F about a set of embeddings, exactly."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from lookalike.errors import check
from lookalike.evaluation import names as metric_names
from lookalike.evaluation.inputs import Codes, Items, Vectors, as_vectors, encode, values_of
from lookalike.evaluation.metrics import AT_K, PLAIN
from lookalike.evaluation.question import Question, ask, read_ignore
from lookalike.evaluation.ranking import Progress, rank
from lookalike.evaluation.ranks import Order, Ranks, Ties, Values, check_ties, order
from lookalike.evaluation.result import Result
from lookalike.evaluation.space import Space, largest_norm, place
from lookalike.geometry import Geometry, check_geometry


@dataclass(frozen=True)
class Sets:
    """What is evaluated: queries, and a gallery unless the queries are their own (leave-one-out)."""

    queries: Tensor
    gallery: Tensor | None
    query_codes: Codes
    gallery_codes: Codes | None
    names: list[Hashable]  # of the classes
    geometry: Geometry
    unit: float

    def space(self, order: Codes, of_gallery: bool) -> Space:
        vectors = self.gallery if of_gallery and self.gallery is not None else self.queries
        return place(vectors, order, self.geometry, self.unit)


def evaluate(
    embeddings: Vectors,
    labels: Any,
    *,
    gallery: Items | None = None,
    gallery_labels: Any = None,
    metrics: str | Iterable[str] | None = None,
    normalise: Geometry = "sphere",
    categories: Any = None,
    ignore: Any = None,
    ties: Ties = "pessimistic",
    tie_tolerance: float = 1e-6,
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Retrieval by nearest neighbours, exactly, in bounded memory.

    Without a gallery every embedding is a query and all others are its gallery. `labels` are any hashable values.
    `metrics=None` gives all ranking metrics; clustering, geometry and curves are measured when named. `ignore` hides
    gallery items from queries: groups, of which a query does not see its own (camera, session), as one sequence or,
    with a gallery, as a pair (query groups, gallery groups); or a boolean mask queries × gallery.

    >>> vectors = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.6, 0.7]])
    >>> result = evaluate(vectors, ["ant", "ant", "bee", "bee"])
    >>> result["recall@1"], result.per_query["map"].tolist()
    (0.75, [1.0, 1.0, 1.0, 0.5])
    """
    wanted = metric_names.read(metrics)
    check_ties(ties)
    check(tie_tolerance >= 0, f"tie_tolerance must not be negative, not {tie_tolerance}")
    sets = read_sets(embeddings, labels, gallery, gallery_labels, check_geometry(normalise))
    rows = len(sets.queries)
    alone = sets.gallery is None
    hidden = read_ignore(ignore, rows, rows if sets.gallery is None else len(sets.gallery), alone)
    groups = None if categories is None else values_of(categories, "categories", rows)
    question = ask(sets.query_codes, sets.gallery_codes, hidden)
    facts = describe(sets, ties, tie_tolerance, seed)
    result = Result({}, {}, [sets.names[code] for code in sets.query_codes.tolist()], facts, groups)
    if wanted.ranking:
        measure_ranking(result, wanted.ranking, question, sets, ties, tie_tolerance, progress)
    return result


def read_sets(embeddings: Any, labels: Any, gallery: Any, gallery_labels: Any, geometry: Geometry) -> Sets:
    queries = as_vectors(embeddings)
    query_values = values_of(labels, "labels", len(queries))
    check((gallery is None) == (gallery_labels is None), "give both gallery and gallery_labels, or neither")
    if gallery is None:
        (codes,), names = encode(query_values)
        check(len(queries) > 1, "one embedding alone has no neighbours: give at least two, or a gallery")
        return Sets(queries, None, codes, None, names, geometry, unit_of(geometry, queries))
    items = as_vectors(gallery, "gallery").to(queries.device)
    wide = (items.shape[1], queries.shape[1])
    check(wide[0] == wide[1], f"the gallery has {wide[0]} dimensions, the embeddings {wide[1]}: they must agree")
    (query_codes, gallery_codes), names = encode(query_values, values_of(gallery_labels, "gallery_labels", len(items)))
    return Sets(queries, items, query_codes, gallery_codes, names, geometry, unit_of(geometry, queries, items))


def unit_of(geometry: Geometry, *sets: Tensor) -> float:
    """Un-normalised vectors are measured in units of the longest, so that no square over- or underflows."""
    return (largest_norm(*sets) or 1.0) if geometry == "none" else 1.0


def describe(sets: Sets, ties: Ties, tolerance: float, seed: int) -> dict[str, Any]:
    return {
        "queries": len(sets.queries),
        "gallery": len(sets.queries) if sets.gallery is None else len(sets.gallery),
        "leave_one_out": sets.gallery is None,
        "classes": len(set(sets.query_codes.tolist())),
        "dimensions": sets.queries.shape[1],
        "normalise": sets.geometry,
        "ties": ties,
        "tie_tolerance": tolerance,
        "seed": seed,
    }


def measure_ranking(
    result: Result,
    names: Sequence[str],
    question: Question,
    sets: Sets,
    ties: Ties,
    tolerance: float,
    progress: Progress | None,
) -> None:
    """Fills in the ranking metrics, per query and on average."""
    check(len(question.queries) > 0, "no query has a relevant item: are labels and gallery_labels of the same kind?")
    gallery = sets.space(question.gallery, of_gallery=True)
    queries = gallery if question.alone else sets.space(question.queries, of_gallery=False)
    values = {name: np.full(len(sets.queries), np.nan) for name in names}
    tied = counted = 0
    for piece in rank(question, queries, gallery, tolerance, progress):
        ranks = with_relevant(piece)
        tied += int(ranks.tied().sum())
        counted += len(ranks.queries)
        standing = order(ranks, ties)
        for name in names:
            values[name][ranks.queries] = measure(name, standing)
    check(counted > 0, "no query has a relevant item left: does ignore hide every one of them?")
    result.facts.update(counted=counted, excluded=len(sets.queries) - counted, tied=tied)
    result.per_query.update(values)
    present = ~np.isnan(values[names[0]])
    result.values_by_name.update({name: float(column[present].mean()) for name, column in values.items()})


def with_relevant(ranks: Ranks) -> Ranks:
    """Without the queries all of whose relevant items are ignored."""
    some = ranks.counts > 0
    return Ranks(ranks.queries[some], ranks.counts[some], ranks.size[some], ranks.over, ranks.upto)


def measure(name: str, standing: Order) -> Values:
    if name in PLAIN:
        return PLAIN[name](standing)
    family, _, k = name.partition("@")
    return AT_K[family](standing, int(k))
