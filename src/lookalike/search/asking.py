"""What a search means: examples become vectors, the nearest photos or things answer, calibration judges them.

Every search comes through here: `Index.search`, `Index.classify` and the server.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TypeVar, cast

import numpy as np

from lookalike.errors import UserError
from lookalike.search.calibration.evidence import HITS, seen_of
from lookalike.search.calibration.thresholds import Calibration, JudgedLabel
from lookalike.search.filters import Condition, Filter
from lookalike.search.item_counts import ItemCounts
from lookalike.search.items import Answer, Identity, Near, Nearest, Vectors
from lookalike.search.queries import combined
from lookalike.search.stores import GenerationError, Store
from lookalike.search.stores.fields import checked, checked_k
from lookalike.search.things import ThingSearch, first_photos, hits_of, text_of
from lookalike.search.wording import COMBINED, PART, in_words

Example = np.ndarray | str  # a vector in the geometry of the index, or the id of an item
First = Sequence[Answer] | Sequence[Nearest]  # the first hits of each vector: photos, or what things follow from
Result = TypeVar("Result")


@dataclass(frozen=True)
class Question:
    """Examples of what is meant and of what is not, and which items may answer.

    Items that it names are not among the hits, nor are those in `leave_out`. `group`: the column that names things,
    where it is not that of the index; "id": photos. `plain` switches off what calibration switched on. `generation`:
    that of the vectors among the examples, where they come from the model of the index. `part`: what is meant is a
    part of a picture.
    """

    like: Sequence[Example]
    unlike: Sequence[Example] = ()
    k: int = 10
    where: Filter = ()
    group: str | None = None
    leave_out: Sequence[str] = ()
    plain: bool = False
    generation: int | None = None
    part: bool = False

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


@dataclass(frozen=True)
class Rules:
    """What an index has found for all questions: what a similarity means, and how its photos are things.

    `thing`: the column that says which thing a photo shows; None: photos answer. `pooled`: how many photos of a thing
    speak for it.
    """

    calibration: Calibration | None = None
    thing: str | None = None
    pooled: int = 1

    @property
    def named(self) -> str:
        """The column that an answer names, and that its chances are about."""
        return self.thing or "label"


def answers(
    store: Store, questions: Sequence[Question], rules: Rules, counts: ItemCounts | None = None
) -> list[Answer | Exception]:
    """An answer to each question, or why it has none: the mistake in one question is not that of the others.

    `counts` of the store may be kept from one call to the next. A GenerationError says that the vectors of a question
    are of a generation that does not answer any more.
    """
    identity, counts = store.identity, counts or ItemCounts(store)
    searches = [_attempted(partial(_prepared, store, question, rules, identity, counts)) for question in questions]
    results = _attempted(partial(_answered, store, searches))
    if store.identity.generation != identity.generation:  # the vectors may not even fit the new one
        return [GenerationError()] * len(questions)
    if isinstance(results, Exception):
        raise results
    return results


@dataclass(frozen=True)
class Prepared:
    """A question whose examples are vectors: one, or one for each photo of the thing that is meant."""

    store: Store
    question: Question
    examples: Vectors
    rules: Rules
    identity: Identity
    counts: ItemCounts

    @property
    def column(self) -> str | None:
        """That by which photos are things; None: photos answer."""
        column = self.question.group or self.rules.thing
        return None if column == "id" else column

    @property
    def pooled(self) -> int:
        """How many photos of a thing speak for it: calibration has chosen for the things of the index."""
        return self.rules.pooled if self.column == self.rules.thing and not self.question.plain else 1

    @property
    def vectors(self) -> Vectors:
        """What is asked for: for photos, all examples as one."""
        return self.vector if self.column is None else self.examples

    @property
    def vector(self) -> Vectors:
        return combined(self.examples, None, self.identity.geometry)

    @property
    def shares_a_pass(self) -> bool:
        """Whether its first hits follow from its vectors alone."""
        return not self.question.where and self.question.group is None

    @property
    def unmeasured(self) -> str | None:
        """Why no calibration speaks of such a question, if none does."""
        return PART if self.question.part else COMBINED if self.question.unlike else None

    @property
    def depth(self) -> int:
        """How many hits it takes: a verdict looks at more of them than may be shown, and so do things."""
        if self.column is not None:
            return first_photos(self.question.k, self.pooled)
        return self.question.k if self.rules.calibration is None else max(self.question.k, HITS)

    def answer(self, first: First | None) -> Answer:
        """Hits, label and verdict; `first` are the first hits where they are known already."""
        shown, near = self._photos(first) if self.column is None else self._things(self.column, first)
        if self.rules.calibration is None:
            return self._named(shown)
        if self.unmeasured is not None:
            return replace(self._named(shown), meaning=self.unmeasured)
        return self._judged(self._named(shown), self._near() if near is None else near, self.rules.calibration)

    def _photos(self, first: First | None) -> tuple[Answer, Sequence[Near]]:
        """The hits that are shown, and those that a verdict rests on."""
        if first is None:
            first = self.store.search(self.vector, self.depth, self.question.where, self.question.excluded)
        (found,) = cast(Sequence[Answer], first)
        judged = found.hits[:HITS] if self.rules.calibration is not None else ()
        near = [Near(hit.id, hit.item.value(self.rules.named), hit.similarity) for hit in judged]
        return replace(found, hits=found.hits[: self.question.k]), near

    def _things(self, column: str, first: First | None) -> tuple[Answer, Sequence[Near] | None]:
        """The things that are shown, and the photos that a verdict rests on, unless these must be asked for."""
        question = self.question
        if first is None:
            first = self.store.nearest(self.examples, self.depth, column, question.where, question.excluded)
        nearest = cast(Sequence[Nearest], first)
        search = ThingSearch(
            self.store, column, self.examples, question.k, self.pooled, question.where, question.excluded
        )
        found = search.found(nearest)
        hits = hits_of(self.store, found.things)
        answer = Answer(hits, certified=found.certified, generation=found.generation, missing=found.missing)
        return answer, nearest[0].items[:HITS] if column == self.rules.named and len(nearest) == 1 else None

    def _near(self, conditions: Filter = ()) -> Sequence[Near]:
        """The nearest photos, with what the answer would call them."""
        where = (*self.question.where, *conditions)
        (near,) = self.store.nearest(self.vector, HITS, self.rules.named, where, self.question.excluded)
        return near.items

    def _named(self, answer: Answer) -> Answer:
        """With the names of the nearest that has one and of the next."""
        names = (text_of(hit.item.value(self.rules.named)) for hit in answer.hits)
        label, second = (*list(dict.fromkeys(name for name in names if name is not None))[:2], None, None)[:2]
        return replace(answer, label=label, second=second)

    def _judged(self, answer: Answer, first: Sequence[Near], calibration: Calibration) -> Answer:
        if not first:
            return in_words(replace(answer, verdict="unknown"), None, calibration)
        by_similarity = replace(answer, verdict=calibration.verdict(first[0].similarity))
        complete = all(photo.name is not None for photo in first)
        named = first if complete else self._near((Condition(self.rules.named, "!=", (None,)),))
        judged = self._chances(named, calibration) if named else None
        if judged is None or judged.chance is None:
            return in_words(by_similarity, None, calibration)
        label = text_of(named[judged.place].name)
        second = None if judged.second < 0 else text_of(named[judged.second].name)
        verdict = calibration.verdict(named[0].similarity, judged.chance, judged.strange)
        named_so = replace(
            answer, label=label, second=second, chance=judged.chance, match=judged.match, verdict=verdict
        )
        return in_words(named_so, judged.either, calibration)

    def _chances(self, named: Sequence[Near], calibration: Calibration) -> JudgedLabel | None:
        """None where one of the hits was removed since, or a shard that must be counted does not answer."""
        try:
            vectors = self.store.vectors([photo.id for photo in named])
            count, where = self.counts.now(), self.question.where
            names = {photo.name for photo in named}
            sizes = {str(name): count((*where, Condition(self.rules.named, "=", (name,)))) for name in names}
            nameless = (*where, Condition(self.rules.named, "=", (None,)))  # an index of the column finds them at once
            items = count(where) - count(nameless)
        except UserError:
            return None
        return calibration.judge(seen_of(named, vectors, sizes, items, self.identity.geometry), self.vector)


def _prepared(store: Store, question: Question, rules: Rules, identity: Identity, counts: ItemCounts) -> Prepared:
    if question.generation not in (None, identity.generation):
        raise GenerationError
    checked_k(question.k)
    every = vectors_of(store, [*question.like, *question.unlike])
    like, unlike = every[: len(question.like)], every[len(question.like) :]
    examples = combined(like, unlike, identity.geometry) if len(unlike) else like
    combined(examples, None, identity.geometry)  # refuses examples that cancel each other out
    return Prepared(store, question, checked(examples, len(examples), identity.dim), rules, identity, counts)


def _answered(store: Store, searches: Sequence[Prepared | Exception]) -> list[Answer | Exception]:
    sharing = {place: one for place, one in enumerate(searches) if isinstance(one, Prepared) and one.shares_a_pass}
    first = _in_one_pass(store, sharing)
    return [
        search if isinstance(search, Exception) else _attempted(partial(search.answer, first.get(place)))
        for place, search in enumerate(searches)
    ]


def _in_one_pass(store: Store, searches: Mapping[int, Prepared]) -> dict[int, First]:
    """The first hits of several searches by one look at all items."""
    if not searches:
        return {}
    k = max(search.depth + len(search.question.excluded) for search in searches.values())
    vectors = [search.vectors for search in searches.values()]
    column = next(iter(searches.values())).column  # that of the index: a search by another has a pass of its own
    every = np.concatenate(vectors)
    found: Iterator[Answer | Nearest]
    found = iter(store.search(every, k)) if column is None else iter(store.nearest(every, k, column))
    parts = [list(islice(found, len(some))) for some in vectors]
    return {
        place: cast(First, [_without(one, search) for one in part])
        for (place, search), part in zip(searches.items(), parts, strict=True)
    }


def _without(found: Answer | Nearest, search: Prepared) -> Answer | Nearest:
    ids = search.question.excluded
    if not ids and isinstance(found, Answer):
        return found
    if isinstance(found, Answer):
        return replace(found, hits=[hit for hit in found.hits if hit.id not in ids])
    return replace(found, items=[photo for photo in found.items if photo.id not in ids][: search.depth])


def _attempted(work: Callable[[], Result]) -> Result | Exception:
    try:
        return work()
    except Exception as error:
        return error
