"""`evaluate`: every metric of [math F] for a set of embeddings, exactly."""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import torch

from lookalike.errors import check
from lookalike.evaluation import curves, pair_curves, whole_set
from lookalike.evaluation import names as metric_names
from lookalike.evaluation.engine.panel import BLOCKS, Blocks
from lookalike.evaluation.engine.question import RankingTask, ask, read_ignore, with_unknown
from lookalike.evaluation.engine.ranking import rank
from lookalike.evaluation.engine.ranks import Order, RelevantRanks, Ties, Values, check_ties, order
from lookalike.evaluation.geometry.spectrum import class_spectrum
from lookalike.evaluation.inputs import Codes, Items, Vectors
from lookalike.evaluation.metrics import AT_K, PLAIN, RANKS
from lookalike.evaluation.names import WITHOUT_CLASSES, Names
from lookalike.evaluation.result import Result
from lookalike.evaluation.sets import Sets, read_sets
from lookalike.geometry import Geometry, check_geometry
from lookalike.labels import encode, values_of
from lookalike.progress import Progress


def evaluate(
    embeddings: Vectors,
    labels: Any = None,
    *,
    gallery: Items | None = None,
    gallery_labels: Any = None,
    metrics: str | Iterable[str] | None = None,
    normalise: Geometry = "sphere",
    categories: Any = None,
    ignore: Any = None,
    relevance: Any = None,
    ties: Ties = "pessimistic",
    tie_tolerance: float = 0.0,
    seed: int = 0,
    progress: Progress | None = None,
    blocks: Blocks = BLOCKS,
) -> Result:
    """Retrieval by nearest neighbours, exactly, in bounded memory.

    `embeddings`, n × d, are the queries; `gallery`, m × d, with `gallery_labels` is what they search. Without a gallery
    every embedding is a query and all others are its gallery. `labels` are any hashable values; a set or list of them
    where items have several, and then those that share one are relevant; None where an item has none.
    `relevance="shared"` grades by the number of shared labels; a matrix queries × gallery says itself what is relevant,
    by booleans or by gains. Grades count for ndcg, any grade above 0 for the other metrics.
    `metrics=None` gives all ranking metrics; clustering, geometry and curves are measured when named. `ignore` hides
    gallery items from queries: groups, of which a query does not see its own (camera, session), as one sequence or,
    with a gallery, as a pair (query groups, gallery groups); or a boolean mask queries × gallery.
    `normalise`: where vectors are compared: "sphere", "ball" or "none". `categories`: the super-category of each query,
    for `by_category`. `ties`: how items of equal similarity are ordered, "pessimistic", "optimistic" or "expected";
    scores closer than `tie_tolerance` are equal, and those closer than 1e-12 in any case. `seed` decides how clusters
    begin; `progress(done, total)` is called. `blocks`: how much is computed at a time, for less memory.

    >>> vectors = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.8, 0.4]])
    >>> result = evaluate(vectors, ["ant", "ant", "bee", "bee"])
    >>> result["recall@1"], result.per_query["map"].tolist()
    (0.75, [1.0, 1.0, 1.0, 0.3333333333333333])
    """
    requested = metric_names.read(metrics)
    check_ties(ties)
    check(tie_tolerance >= 0, f"tie_tolerance must be at least 0, not {tie_tolerance}")
    sets = read_sets(embeddings, labels, gallery, gallery_labels, check_geometry(normalise), relevance)
    check_classes(requested, sets)
    rows = len(sets.queries)
    hidden = with_unknown(read_ignore(ignore, rows, sets.gallery_size, gallery is None), sets.unknown)
    groups = None if categories is None else values_of(categories, "categories", rows)
    question = ask(sets.query_codes, sets.gallery_codes, hidden, sets.relevance)
    names = [sets.names[code] for code in sets.query_codes.tolist()]
    facts = describe(sets, ties, tie_tolerance, seed)
    own = None if sets.labels is None else sets.labels.lists()
    result = Result({}, {}, names, facts, groups, {}, lambda rows: nearest_wrong(sets, question, rows), own)
    if requested.ranking or "cmc" in requested.curves or "retrieval_pr" in requested.curves:
        measure_ranking(result, requested, question, sets, progress, blocks)
    if requested.rates or "pr" in requested.curves or "roc" in requested.curves:
        measure_pairs(result, requested, question, sets)
    if requested.clustering or requested.geometry:
        measure_whole(result, requested, sets, groups, progress)
    return result


def check_classes(requested: Names, sets: Sets) -> None:
    """Refuse metrics of classes where items have none or several."""
    of_classes = [*requested.clustering, *(name for name in requested.geometry if name not in WITHOUT_CLASSES)]
    check(
        sets.relevance is None or not of_classes,
        f"{', '.join(of_classes)} compare classes and need one label per item: here items have several, or none",
    )


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
    requested: Names,
    question: RankingTask,
    sets: Sets,
    progress: Progress | None,
    blocks: Blocks,
) -> None:
    """Fill in the ranking metrics, per query and on average, and the curves over ranks."""
    why = "no class has two samples" if question.leave_one_out else "no label of a query is among gallery_labels"
    if sets.relevance is not None:
        why = "no label is shared, or the relevance matrix is empty"
    check(len(question.queries) > 0, f"no query has a relevant item: {why}")
    unit = sets.binary_unit
    tolerance = result.facts["tie_tolerance"] * (sets.unit / unit) ** 2  # which is measured in the unit itself
    gallery = sets.space(question.gallery, of_gallery=True, unit=unit)
    queries = gallery if question.leave_one_out else sets.space(question.queries, of_gallery=False, unit=unit)
    values = {name: np.full(len(sets.queries), np.nan) for name in requested.ranking}
    sums: dict[str, Values] = {name: np.zeros(1) for name in requested.curves if name in ("cmc", "retrieval_pr")}
    tied = counted = 0
    depths = {name: depth(name) for name in requested.ranking}
    needed = [1 if name == "mrr" else few for name, few in depths.items()] + [None] * len(sums)
    most = deepest(result.facts["ties"], sets, needed)
    largest = max((few for few in depths.values() if few is not None), default=0)
    for piece in rank(question, queries, gallery, tolerance, most, progress, blocks):
        ranks = with_relevant(piece)
        if not len(ranks.queries):
            continue
        tied += int(ranks.tied().sum())
        counted += len(ranks.queries)
        standing = order(ranks, result.facts["ties"])
        near = standing.within(largest) if standing.plain else standing
        for name in requested.ranking:
            values[name][ranks.queries] = measure(name, standing if depths[name] is None else near)
        for name in sums:
            sums[name] = sums[name] + curve_sums(name, ranks, standing)
    check(counted > 0, "no query has a relevant item left: does ignore hide every one of them?")
    result.facts.update(counted=counted, excluded=len(sets.queries) - counted, tied=tied)
    result.per_query.update(values)
    result.values_by_name.update({name: float(np.nanmean(column)) for name, column in values.items()})
    for name, total in sums.items():
        axis = {"k": np.arange(1.0, len(total) + 1)} if name == "cmc" else {"recall": curves.LEVELS}
        result.curves[name] = axis | {"recall" if name == "cmc" else "precision": total / counted}


def depth(name: str) -> int | None:
    """How many ranks a metric looks at; None: as many as the query has relevant items, or all."""
    return RANKS.get(name) if name in PLAIN else int(name.partition("@")[2])


def deepest(ties: Ties, sets: Sets, depths: list[int | None]) -> int | None:
    """How many of a query's relevant items must be ranked; None: all. Tied groups and grades are never cut in two."""
    graded = sets.relevance is not None and sets.relevance.graded
    few = [ranks for ranks in depths if ranks is not None]
    return None if graded or ties == "expected" or len(few) < len(depths) else max(few)


def curve_sums(name: str, ranks: RelevantRanks, standing: Order) -> Values:
    if name == "cmc":
        return curves.cmc_sums(standing)
    # a curve of one ranking: tied groups, which only "expected" leaves, are read pessimistically
    return curves.precision_recall_sums(standing if standing.plain else order(ranks, "pessimistic"))


def with_relevant(ranks: RelevantRanks) -> RelevantRanks:
    """Without the queries all of whose relevant items are ignored."""
    some = ranks.counts > 0
    queries, counts, kept, size = (part[some] for part in (ranks.queries, ranks.counts, ranks.kept, ranks.size))
    return RelevantRanks(queries, counts, kept, size, ranks.over, ranks.upto, ranks.gains)


def measure(name: str, standing: Order) -> Values:
    if name in PLAIN:
        return PLAIN[name](standing)
    family, _, k = name.partition("@")
    return AT_K[family](standing, int(k))


def measure_pairs(result: Result, requested: Names, question: RankingTask, sets: Sets) -> None:
    """PR, ROC and TAR@FAR over all pairs."""
    tally = pair_curves.tally_sets(sets, question)
    few = pair_curves.thinned(tally)
    if "pr" in requested.curves:
        result.values_by_name["pr_auc"] = pair_curves.pr_area(tally)
        result.values_by_name["pr_ap"] = pair_curves.average_precision(tally)
        result.curves["pr"] = {"recall": few.recall, "precision": few.precision, "threshold": few.threshold}
    if "roc" in requested.curves:
        result.values_by_name["roc_auc"] = pair_curves.roc_area(tally)
        result.curves["roc"] = {"far": few.far, "tar": few.recall, "threshold": few.threshold}
    for far in requested.rates:
        result.values_by_name[f"tar@{far:g}"] = pair_curves.tar(tally, far)


def measure_whole(
    result: Result, requested: Names, sets: Sets, groups: list[Hashable] | None, progress: Progress | None
) -> None:
    vectors, codes = sets.everything()
    seed = result.facts["seed"]
    if requested.clustering:
        result.values_by_name.update(whole_set.measure_clustering(requested.clustering, vectors, codes, seed, progress))
        if groups is not None:
            (categories,), _ = encode(groups)
            agreement = whole_set.measure_clustering(
                requested.clustering, vectors[: len(groups)], categories, seed, progress
            )
            result.values_by_name.update({f"category_{name}": value for name, value in agreement.items()})
    result.values_by_name.update(whole_set.measure_geometry(requested.geometry, vectors, codes))
    if "rho_class" in requested.geometry:
        values = class_spectrum(vectors, codes).numpy()
        result.curves["class_spectrum"] = {"place": np.arange(1.0, len(values) + 1), "value": values}


def nearest_wrong(sets: Sets, question: RankingTask, rows: Codes) -> list[Hashable]:
    """The class of the nearest item of another class, for some queries."""
    labels = sets.query_codes if sets.gallery_codes is None else sets.gallery_codes
    queries = sets.space(rows, of_gallery=False)
    gallery = sets.space(np.arange(len(labels)), of_gallery=True)
    labels_of: list[Hashable] = []
    for start in range(0, len(rows), 1024):
        part = slice(start, min(start + 1024, len(rows)))
        scores = queries.block(
            part,
            gallery,
            slice(0, len(labels)),
            torch.empty(part.stop - start, len(labels), device=gallery.vectors.device),
        )
        if sets.relevance is None:
            hidden = sets.query_codes[rows[part]][:, None] == labels
        else:
            hidden = np.zeros((part.stop - start, len(labels)), np.bool_)
            hidden[sets.relevance.relevant(rows[part])[:2]] = True
        if question.ignore is not None:
            hidden |= question.ignore.hides(rows[part][:, None], np.arange(len(labels)))
        scores = scores.cpu().masked_fill_(torch.from_numpy(hidden), -torch.inf)
        labels_of += [sets.names[labels[place]] for place in scores.argmax(1).tolist()]
    return labels_of
