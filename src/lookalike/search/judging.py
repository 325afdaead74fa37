"""Is the best hit right? Answers with the verdict of a calibration."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from lookalike.errors import UserError
from lookalike.search.calibration import Calibration
from lookalike.search.evidence import HITS, of_hits
from lookalike.search.filters import Filter
from lookalike.search.items import Answer, Hit
from lookalike.search.stores import Store
from lookalike.search.trials import LABELLED

Ask = Callable[[int, Filter, str | None], Answer]  # so many hits of one query, under further conditions, by group


def answered(
    store: Store, calibration: Calibration | None, ask: Ask, k: int, group: str | None, first: Answer | None = None
) -> Answer:
    """The answer to one query with its verdict; `first` are its first hits, ungrouped, where they are known already."""
    if calibration is None:
        return ask(k, (), group) if first is None else replace(first, hits=first.hits[:k])
    deep = ask(max(k, HITS), (), None) if first is None else first  # a verdict wants more hits than may be shown
    answer = deep if group is None else ask(k, (), group)
    return _judged(store, calibration, replace(answer, hits=answer.hits[:k]), deep.hits[:HITS], ask)


def _judged(store: Store, calibration: Calibration, answer: Answer, first: Sequence[Hit], ask: Ask) -> Answer:
    if not first:
        return replace(answer, verdict="unknown")
    by_similarity = replace(answer, verdict=calibration.verdict(first[0].similarity))
    if not calibration.weights:
        return by_similarity
    labelled = first if all(hit.label is not None for hit in first) else ask(HITS, LABELLED, None).hits
    if not labelled:
        return by_similarity
    try:
        vectors = store.vectors([hit.id for hit in labelled])
    except UserError:  # one of them was removed since
        return by_similarity
    chance = calibration.chance(of_hits(labelled, vectors, store.identity.geometry))
    return replace(answer, verdict=calibration.verdict(labelled[0].similarity, chance), chance=chance)
