"""Questions of several people, answered in one pass over the index."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from lookalike.errors import UserError
from lookalike.search.calibration import Calibration
from lookalike.search.evidence import HITS
from lookalike.search.filters import Filter
from lookalike.search.index import Index
from lookalike.search.items import Answer, Vectors
from lookalike.search.judging import answered
from lookalike.search.quality import Quality, improved, label_of
from lookalike.search.queries import combined
from lookalike.search.serve.refusals import no_item, of_mistake
from lookalike.search.stores import GenerationError, StorageError

Result = TypeVar("Result")


@dataclass(frozen=True)
class Question:
    """Vectors and items that are meant and that are not; `generation` is that of the vectors."""

    like: Sequence[np.ndarray]
    unlike: Sequence[np.ndarray]
    items: Sequence[str]
    not_items: Sequence[str]
    where: Filter
    group: str | None
    k: int
    generation: int | None

    @property
    def own(self) -> list[str]:
        """The items it names: they are not among the hits."""
        return list(dict.fromkeys([*self.items, *self.not_items]))


@dataclass(frozen=True)
class Reply:
    """An answer, its label, what the verdict means, and how many items there are."""

    answer: Answer
    label: str | None
    meaning: str
    items: int


class Searcher:
    """Answers to questions, for one thread."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._counted: tuple[str, int] = ("", 0)
        self.quality = index.quality  # as of the last questions

    def answers(self, questions: Sequence[Question]) -> list[Reply | Exception]:
        """One answer each; those whose vectors are of another generation are told so."""
        identity, calibration = self.index.identity, self.index.calibration
        quality = self.quality = self.index.quality
        fitting = [place for place, one in enumerate(questions) if one.generation in (None, identity.generation)]
        vectors = {place: _tried(lambda place=place: self._vector(questions[place])) for place in fitting}  # type: ignore[misc]
        good = {place: vector for place, vector in vectors.items() if not isinstance(vector, Exception)}
        bad = {place: error for place, error in vectors.items() if isinstance(error, Exception)}
        items = self._count()
        # vectors may not fit a new generation
        answered = _tried(lambda: self._together(questions, good, quality, calibration))
        if self.index.identity.generation != identity.generation:
            return [GenerationError()] * len(questions)
        if isinstance(answered, Exception):
            raise answered
        answered |= bad
        stale: Answer | Exception = GenerationError()
        answers = [answered.get(place, stale) for place in range(len(questions))]
        return [each if isinstance(each, Exception) else _worded(each, calibration, quality, items) for each in answers]

    def _count(self) -> int:
        version = self.index.store.version()
        if self._counted[0] != version:
            with suppress(StorageError):  # a shard is down: as many as there were
                self._counted = version, len(self.index)
        return self._counted[1]

    def _vector(self, question: Question) -> Vectors:
        store, own = self.index.store, question.own
        known: dict[str, np.ndarray] = {}
        if own:
            there = {item.id for item in store.with_ids(own)}
            for name in own:
                if name not in there:
                    raise no_item(name)
            known = dict(zip(own, store.vectors(own), strict=True))
        positive = np.stack([*question.like, *(known[name] for name in question.items)])
        against = [*question.unlike, *(known[name] for name in question.not_items)]
        return combined(positive, np.stack(against) if against else None, self.index.identity.geometry)

    def _together(
        self, questions: Sequence[Question], vectors: dict[int, Vectors], quality: Quality,
        calibration: Calibration | None,
    ) -> dict[int, Answer | Exception]:  # fmt: skip
        """Plain questions in one pass, the others one by one."""
        simple = not quality.expansion and not quality.reciprocal
        plain = [place for place in vectors if simple and not questions[place].where and questions[place].group is None]
        first: dict[int, Answer] = {}
        if plain:
            most = max(max(questions[place].k, HITS) + len(questions[place].own) for place in plain)
            answers = self.index.store.search(np.concatenate([vectors[place] for place in plain]), most)
            for place, answer in zip(plain, answers, strict=True):
                own = set(questions[place].own)
                first[place] = replace(answer, hits=[hit for hit in answer.hits if hit.id not in own])

        def one(place: int) -> Answer:
            question = questions[place]

            def ask(number: int, more: Filter, group: str | None) -> Answer:
                where = (*question.where, *more)
                return improved(self.index.store, vectors[place], number, quality, where, group, question.own)

            return answered(self.index.store, calibration, ask, question.k, question.group, first.get(place))

        return {place: _tried(lambda place=place: one(place)) for place in vectors}  # type: ignore[misc]


def _tried(work: Callable[[], Result]) -> Result | Exception:
    """A result, or why there is none: one question's trouble is not that of the others."""
    try:
        return work()
    except UserError as mistake:
        return of_mistake(mistake)
    except Exception as error:
        return error


def _worded(answer: Answer, calibration: Calibration | None, quality: Quality, items: int) -> Reply:
    label, _ = label_of(answer.hits, quality.rule)
    if calibration is None:
        meaning = "Nobody has measured yet what a similarity means here: lookalike calibrate does."
        return Reply(answer, label, meaning, items)
    return Reply(answer, label, calibration.meaning(answer.verdict), items)
