"""What a search means: examples become one vector, the nearest items answer, calibration judges them.

Everybody asks here: `Index.search`, `Index.classify` and the server.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from lookalike.errors import UserError
from lookalike.search.calibration.evidence import HITS, seen_of
from lookalike.search.calibration.thresholds import Calibration, JudgedLabel
from lookalike.search.calibration.trials import LABELLED
from lookalike.search.filters import Condition, Filter
from lookalike.search.items import Answer, Hit, Identity, Vectors
from lookalike.search.queries import combined
from lookalike.search.stores import GenerationError, Store
from lookalike.search.stores.fields import checked, checked_k
from lookalike.search.wording import in_words

Example = np.ndarray | str  # a vector in the geometry of the index, or the id of an item
Result = TypeVar("Result")


@dataclass(frozen=True)
class Question:
    """Examples of what is meant and of what is not, and which items may answer.

    Items that it names are not among the hits, nor are those in `leave_out`. `plain` switches off what calibration
    switched on. `generation`: that of the vectors among the examples, where they come from the model of the index.
    """

    like: Sequence[Example]
    unlike: Sequence[Example] = ()
    k: int = 10
    where: Filter = ()
    group: str | None = None
    leave_out: Sequence[str] = ()
    plain: bool = False
    generation: int | None = None

    @property
    def excluded(self) -> list[str]:
        """Ids that are not among the hits."""
        named = [example for example in (*self.like, *self.unlike) if isinstance(example, str)]
        return list(dict.fromkeys([*named, *self.leave_out]))


def vectors_of(store: Store, examples: Sequence[Example]) -> Vectors:
    """The vectors of examples, in their order; an unknown id is refused."""
    ids = list(dict.fromkeys(example for example in examples if isinstance(example, str)))
    known = dict(zip(ids, store.vectors(ids), strict=True)) if ids else {}
    return np.stack([known[example] if isinstance(example, str) else example for example in examples])


def answers(store: Store, questions: Sequence[Question], calibration: Calibration | None) -> list[Answer | Exception]:
    """An answer to each question, or why it has none: the mistake in one question is not that of the others.

    A GenerationError says that the vectors of a question are of a generation that does not answer any more.
    """
    rules = Rules(store.identity, calibration)
    searches = [_attempted(partial(_prepared, store, question, rules)) for question in questions]
    results = _attempted(partial(_answered, store, searches))
    if store.identity.generation != rules.identity.generation:  # the vectors may not even fit the new one
        return [GenerationError()] * len(questions)
    if isinstance(results, Exception):
        raise results
    return results


@dataclass(frozen=True)
class Rules:
    """What holds for all questions of a batch: the generation that answers, and what calibration has found for it."""

    identity: Identity
    calibration: Calibration | None


@dataclass(frozen=True)
class Prepared:
    """A question whose examples have become one vector."""

    store: Store
    question: Question
    vector: Vectors
    rules: Rules

    @property
    def shares_a_pass(self) -> bool:
        """Whether its first hits follow from its vector alone."""
        return not self.question.where and self.question.group is None

    @property
    def depth(self) -> int:
        """How many hits it takes: a verdict looks at more of them than may be shown."""
        return self.question.k if self.rules.calibration is None else max(self.question.k, HITS)

    def hits(self, k: int, conditions: Filter = (), group: str | None = None) -> Answer:
        """The first k hits, under further conditions, or the best of each group."""
        where = (*self.question.where, *conditions)
        (answer,) = self.store.search(self.vector, k, where, group, self.question.excluded)
        return answer

    def answer(self, first: Answer | None) -> Answer:
        """Hits, label and verdict; `first` are the first hits where they are known already."""
        k, group, calibration = self.question.k, self.question.group, self.rules.calibration
        if calibration is None:
            return self._shown(self.hits(k, (), group) if first is None else first)
        first = self.hits(self.depth) if first is None else first
        shown = self._shown(first if group is None else self.hits(k, (), group))
        return self._judged(shown, first.hits[:HITS], calibration)

    def _shown(self, answer: Answer) -> Answer:
        """The hits that were asked for, with the label of the nearest that has one."""
        hits = answer.hits[: self.question.k]
        labels = list(dict.fromkeys(hit.label for hit in hits if hit.label is not None))
        label, second = (*labels[:2], None, None)[:2]
        return replace(answer, hits=hits, label=label, second=second)

    def _judged(self, answer: Answer, first: Sequence[Hit], calibration: Calibration) -> Answer:
        if not first:
            return in_words(replace(answer, verdict="unknown"), None, calibration)
        by_similarity = replace(answer, verdict=calibration.verdict(first[0].similarity))
        labelled = first if all(hit.label is not None for hit in first) else self.hits(HITS, LABELLED).hits
        judged = self._chances(labelled, calibration) if labelled else None
        if judged is None or judged.chance is None:
            return in_words(by_similarity, None, calibration)
        label = labelled[judged.place].label
        second = None if judged.second < 0 else labelled[judged.second].label
        verdict = calibration.verdict(labelled[0].similarity, judged.chance, judged.strange)
        named = replace(answer, label=label, second=second, chance=judged.chance, match=judged.match, verdict=verdict)
        return in_words(named, judged.either, calibration)

    def _chances(self, labelled: Sequence[Hit], calibration: Calibration) -> JudgedLabel | None:
        """None where one of the hits was removed since, or a shard that must be counted does not answer."""
        try:
            vectors = self.store.vectors([hit.id for hit in labelled])
            sizes = {label: self._size(label) for label in {str(hit.label) for hit in labelled}}
            items = self.store.count(self.question.where)
        except UserError:
            return None
        return calibration.judge(seen_of(labelled, vectors, sizes, items, self.rules.identity.geometry))

    def _size(self, label: str) -> int:
        return self.store.count((*self.question.where, Condition("label", "=", (label,))))


def _prepared(store: Store, question: Question, rules: Rules) -> Prepared:
    if question.generation not in (None, rules.identity.generation):
        raise GenerationError
    checked_k(question.k)
    every = vectors_of(store, [*question.like, *question.unlike])
    like, unlike = every[: len(question.like)], every[len(question.like) :]
    vector = combined(like, unlike if len(unlike) else None, rules.identity.geometry)
    return Prepared(store, question, checked(vector, 1, rules.identity.dim), rules)


def _answered(store: Store, searches: Sequence[Prepared | Exception]) -> list[Answer | Exception]:
    sharing = {place: one for place, one in enumerate(searches) if isinstance(one, Prepared) and one.shares_a_pass}
    first = _in_one_pass(store, sharing)
    return [
        search if isinstance(search, Exception) else _attempted(partial(search.answer, first.get(place)))
        for place, search in enumerate(searches)
    ]


def _in_one_pass(store: Store, searches: Mapping[int, Prepared]) -> dict[int, Answer]:
    """The first hits of several searches by one look at all items."""
    if not searches:
        return {}
    k = max(search.depth + len(search.question.excluded) for search in searches.values())
    answers = store.search(np.concatenate([search.vector for search in searches.values()]), k)
    return {
        place: _without(answer, search.question.excluded)
        for (place, search), answer in zip(searches.items(), answers, strict=True)
    }


def _without(answer: Answer, ids: Sequence[str]) -> Answer:
    return replace(answer, hits=[hit for hit in answer.hits if hit.id not in ids])


def _attempted(work: Callable[[], Result]) -> Result | Exception:
    try:
        return work()
    except Exception as error:
        return error
