"""Items, classes and the whole index, as the API shows them."""

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from lookalike.data.vocabulary import by_number
from lookalike.files import printable
from lookalike.search.index import Index
from lookalike.search.items import Answer, Hit, Item, Value
from lookalike.search.pictures import thumbnail
from lookalike.search.serve.pictures import in_turn
from lookalike.search.serve.refusals import no_item
from lookalike.search.serve.schema import (
    AnswerForm,
    CalibrationForm,
    ColumnForm,
    HitForm,
    IndexForm,
    ItemForm,
    LabelForm,
    LabelsForm,
    LimitsForm,
    Milliseconds,
    PhotoForm,
    ValueForm,
)
from lookalike.search.serve.settings import Settings
from lookalike.search.stores import Column
from lookalike.search.stores.fields import OWN
from lookalike.search.stores.places import name_of

PART = re.compile(r"(\d+)")
VALUES, NEWEST = 50, 12
MOST_CLASSES = 1_000_000  # whose names are found
QUICK = 0.25  # seconds: an overview that is made sooner is made after every change
PATIENCE = 20  # others may be as many times as old as they took to make
UNCALIBRATED = "Nobody has measured yet what a similarity means here: lookalike calibrate does."
KEPT = 64 << 20  # bytes of thumbnails in memory


def natural(name: str) -> list[tuple[int, tuple[int, str, str]]]:
    """A key by which "mug 9" comes before "mug 10".

    >>> sorted(["mug 10", "Mug 9", "9", "10", "mug"], key=natural)
    ['9', '10', 'mug', 'Mug 9', 'mug 10']
    """
    parts = PART.split(name.casefold())
    return [(0, by_number(part)) if part.isdecimal() else (1, (0, part, part)) for part in parts if part]


@dataclass(frozen=True)
class ClassList:
    """The names of all classes with the number of their items, in natural order."""

    counts: Sequence[tuple[str, int]] = ()

    @staticmethod
    def of(counts: Sequence[tuple[object, int]]) -> "ClassList":
        return ClassList(sorted(((str(name), number) for name, number in counts), key=lambda each: natural(each[0])))

    def found(self, text: str) -> Sequence[tuple[str, int]]:
        """Those whose names hold a text, in whatever case; one that is called exactly so comes first."""
        if not text:
            return self.counts
        part = text.casefold()
        found = [each for each in self.counts if part in each[0].casefold()]
        return sorted(found, key=lambda each: each[0] != text)


def item_form(item: Item) -> ItemForm:
    added = None if item.added is None else datetime.fromtimestamp(item.added, UTC).isoformat(timespec="seconds")
    return ItemForm(
        id=item.id,
        label=item.label,
        path=None if item.path is None else printable(Path(item.path).name),
        columns=dict(item.columns),
        thumbnail=f"/v1/items/{quote(item.id, safe='')}/thumbnail",
        added=added,
    )


def hit_form(hit: Hit) -> HitForm:
    photos = [PhotoForm(item=item_form(photo.item), similarity=photo.similarity) for photo in hit.photos]
    return HitForm(item=item_form(hit.item), similarity=hit.similarity, thing=hit.thing, photos=photos)


def answer_form(answer: Answer, items: int, times: dict[str, float], query: str) -> AnswerForm:
    """An answer, how many items there are, the milliseconds of each stage, and what feedback calls the query."""
    return AnswerForm(
        hits=[hit_form(hit) for hit in answer.hits],
        match=answer.match,
        label=answer.label,
        second=answer.second,
        chance=answer.chance,
        verdict=None if answer.verdict == "uncalibrated" else answer.verdict,
        words=answer.words,
        meaning=answer.meaning or UNCALIBRATED,
        items=items,
        query=query,
        missing=list(answer.missing),
        milliseconds=Milliseconds(**{stage: round(value, 3) for stage, value in times.items()}),
    )


def column_form(name: str, column: Column) -> ColumnForm:
    values = [ValueForm(value=value, items=number) for value, number in column.counts]
    return ColumnForm(name=name, type=column.kind, values=values, least=column.least, most=column.most)  # type: ignore[arg-type]


class Overview:
    """The index as a whole, made again after a change, but not all the time."""

    def __init__(self, index: Index, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self.index, self.settings, self._clock = index, settings, clock
        self._lock = threading.Lock()
        self._version, self._until = "", 0.0
        self._form: IndexForm | None = None
        self._classes = ClassList()

    def labels(self, text: str, offset: int, limit: int) -> LabelsForm:
        """Some of the classes with a text in their names, in natural order."""
        self.form()
        found = self._classes.found(text)
        return LabelsForm(found=len(found), labels=self._labels(found[offset : offset + limit]))

    def form(self) -> IndexForm:
        with self._lock:
            version = self.index.store.version()
            if self._form is None or (version != self._version and self._clock() >= self._until):
                began = self._clock()
                self._form, self._version = self._made(), version
                took = self._clock() - began
                self._until = self._clock() + (PATIENCE * took if took > QUICK else 0)
            return self._form

    def _made(self) -> IndexForm:
        store = self.index.store
        columns = [name for name in store.columns() if name == "label" or name not in OWN]
        summary = store.summary([name for name in columns if name != "label"], VALUES, NEWEST)
        named = store.summary(["label"], MOST_CLASSES).columns["label"]
        self._classes = ClassList.of(named.counts)
        labels, largest = self._labels(self._classes.counts[:VALUES]), self._labels(named.counts[:1])
        newest = [item_form(item) for item in summary.newest]
        return IndexForm(
            name=name_of(self.settings.place),
            items=store.count(),
            thing=self.index.thing,
            classes=named.distinct,
            labels=labels,
            columns=[column_form(name, column) for name, column in summary.columns.items()],
            newest=newest,
            sample=largest[0].example if largest else next(iter(newest), None),  # to try: it has company in its class
            calibration=self._calibration(),
            read_only=self.settings.read_only,
            why=self.index.identity.fingerprint is not None,
            feedback=store.marks.count(),
            limits=LimitsForm(body=self.settings.body, pixels=self.settings.pixels, k=self.settings.hits),
        )

    def _labels(self, counts: Sequence[tuple[Value, int]]) -> list[LabelForm]:
        examples = self.index.store.first_of("label", [label for label, _ in counts])
        return [
            LabelForm(label=str(label), items=number, example=item_form(examples[label]) if label in examples else None)
            for label, number in counts
        ]

    def _calibration(self) -> CalibrationForm | None:
        calibration = self.index.calibration
        if calibration is None:
            return None
        stale = self.index.stale
        return CalibrationForm(
            precision=calibration.target,
            coverage=calibration.coverage,
            date=calibration.date,
            stale=stale is not None,
            meaning=calibration.promise + (f" Calibrate again: {stale}." if stale else ""),
        )


class Thumbnails:
    """Pictures of items; the last ones stay in memory, up to `kept` bytes."""

    def __init__(self, index: Index, kept: int = KEPT) -> None:
        self.index, self.kept = index, kept
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, float | None], bytes] = OrderedDict()
        self._size = 0

    def get(self, id_: str) -> bytes | None:
        """A JPEG, or None where the picture cannot be read."""
        items = self.index.store.items([id_])
        if not items:
            raise no_item(id_)
        name = (id_, items[0].added)  # an item that is written again has a new time
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
                return self._kept[name]
        content = thumbnail(self.index.store, items[0], turn=in_turn)
        if content is not None:
            with self._lock:
                self._size += len(content) - len(self._kept.get(name, b""))
                self._kept[name] = content
                while self._size > self.kept:
                    self._size -= len(self._kept.popitem(last=False)[1])
        return content
