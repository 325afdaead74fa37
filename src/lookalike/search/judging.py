"""Is the best hit right? The verdict of a calibration on the hits of one query."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lookalike.errors import UserError
from lookalike.search import evidence
from lookalike.search.calibration import Calibration
from lookalike.search.filters import Filter
from lookalike.search.items import Hit, Verdict
from lookalike.search.stores import Store
from lookalike.search.trials import LABELLED


@dataclass(frozen=True)
class Judgement:
    """A verdict, and the chance it rests on where there are labels to read one from."""

    verdict: Verdict
    chance: float | None = None


def judge(
    store: Store, calibration: Calibration, hits: Sequence[Hit], again: Callable[[Filter], Sequence[Hit]]
) -> Judgement:
    """`hits` are the first 20 of one query or more, ungrouped; `again` asks for as many under further conditions."""
    if not hits:
        return Judgement("unknown")
    by_similarity = Judgement(calibration.verdict(hits[0].similarity))
    if not calibration.weights:
        return by_similarity
    first = hits[: evidence.HITS]
    if any(hit.label is None for hit in first):
        first = again(LABELLED)
    if not first:
        return by_similarity
    try:
        vectors = store.vectors([hit.id for hit in first])
    except UserError:  # one of them was removed since
        return by_similarity
    chance = calibration.chance(evidence.of_hits(first, vectors, store.identity.geometry))
    return Judgement(calibration.verdict(first[0].similarity, chance), chance)
