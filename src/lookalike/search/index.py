"""The index: images that can be found by how they look.

shop = Index.create("shop.index", model="run/model")
shop.add("photos/")
answer = shop.search("query.jpg", k=10, where={"brand": "x"}, group="label")
"""

import json
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from lookalike.errors import UserError, check
from lookalike.models import Model
from lookalike.progress import Progress, Stage
from lookalike.search import asking, filters, thing_column
from lookalike.search.adding import sources, vectors
from lookalike.search.adding.encoding import Encoding
from lookalike.search.adding.sources import Source
from lookalike.search.adding.update import Update, prune, update
from lookalike.search.asking import Question, Rules
from lookalike.search.calibration import kept, measuring
from lookalike.search.calibration.measuring import Calibrated
from lookalike.search.calibration.thresholds import Calibration, possible
from lookalike.search.classifying import classify
from lookalike.search.filters import Where
from lookalike.search.heat import Why
from lookalike.search.index_pictures import IndexPictures, is_vector
from lookalike.search.item_counts import ItemCounts
from lookalike.search.items import Answer, Classified, Identity, Vectors
from lookalike.search.log import FEW, LogEntry, removed, this_user
from lookalike.search.model_copy import identity_of, load_model, model_content
from lookalike.search.quality import Quality
from lookalike.search.queries import Box
from lookalike.search.receipt import Receipt
from lookalike.search.stores import Approximating, GenerationError, Store, places
from lookalike.search.stores.copying import FACT as COPY
from lookalike.search.stores.places import Place
from lookalike.search.upgrading.hits import HITS
from lookalike.search.watching.reference import Reference
from lookalike.workers import Workers

CLASSES = 1_000_000  # that are counted
NO_MODEL = "none"  # stands in the place of a model, in Python as on the command line: for vectors made elsewhere
Query = Any  # a file, an id, a PIL image, an array of pixels, a vector


class Index:
    """Images with their vectors, in a folder or on PostgreSQL; see `create`, `open`, `add` and `search`.

    `place`: a folder, or the address of a PostgreSQL server; `store`: what keeps it there. `source`: whatever
    `data.load` takes, and unlabelled images. `k`: how many items an answer has. `where`: conditions on columns.
    `group`: things by the values of this column, each with its best photos. `progress(done, total)` is called.
    """

    def __init__(self, store: Store, place: Place) -> None:
        self.store, self.place = store, place
        self._loaded: Encoding | None = None
        self._counts = ItemCounts(store)
        self._pictures = IndexPictures(store, lambda: self._encoding)

    @staticmethod
    def create(
        place: Place, model: str | Path | Model | None = None, *, dim: int | None = None, geometry: str = "sphere"
    ) -> "Index":
        """A new index for the images of a `model`; with None or "none", for vectors of `dim` dimensions made elsewhere.

        `geometry`: where those are compared: "sphere", "ball" or "none".
        """
        if model is None or model == NO_MODEL:
            check(dim is not None, "give the model that embeds the images, or none and dim for vectors made elsewhere")
            return Index(places.created(place, Identity(None, geometry, dim)), place)  # type: ignore[arg-type]
        loaded = model if isinstance(model, Model) else Model.load(model)
        index = Index(places.created(place, identity_of(loaded)), place)
        index.keep_model(loaded)
        if not isinstance(model, Model):
            kept.adopt(index.store, Path(model), loaded)
        return index

    @staticmethod
    def open(place: Place, complete: bool = False) -> "Index":
        """An index that is there already; `complete` refuses a search where a shard does not answer."""
        return Index(places.opened(place, complete), place)

    @staticmethod
    def restore(place: Place, backup: Path) -> "Index":
        """The index of a `backup` in the place of what is there, damaged or not; see `Store.backup`.

        A folder keeps what it held, as index.sqlite.before.
        """
        places.restored(place, backup)
        index = Index.open(place)
        index.note("index restored", items=len(index))
        return index

    @staticmethod
    def for_vectors(place: Place, file: Path) -> "Index":
        """A new index without a model, for the vectors in a `file`."""
        check(vectors.holds_vectors(file), f"'{file}' does not hold vectors: give the model that embeds these images")
        _, content, _ = vectors.read(vectors.files(file)[0])
        return Index.create(place, dim=content.shape[1])

    @staticmethod
    def exists(place: Place) -> bool:
        """Whether there is an index."""
        return places.exists(place)

    @property
    def shown(self) -> str:
        """Where the index is, for people: without passwords."""
        return places.shown(self.place)

    def close(self) -> None:
        """Close its files or connections."""
        self.store.close()

    def __len__(self) -> int:
        return self.store.count()

    @property
    def identity(self) -> Identity:
        return self.store.identity

    @property
    def model(self) -> Model:
        """The model that embeds what is added and what is searched for."""
        return self._encoding.model

    @property
    def _encoding(self) -> Encoding:
        fingerprint = self.identity.fingerprint
        if fingerprint is None:
            raise UserError("this index holds vectors made elsewhere and has no model: search by vector or by id")
        if self._loaded is None or self._loaded.fingerprint != fingerprint:
            self._loaded = Encoding(self.load_model(fingerprint))
        return self._loaded

    def load_model(self, fingerprint: str) -> Model:
        """The model with this `fingerprint`, that of a generation, from the files that are kept with the index."""
        return load_model(self.store, fingerprint, places.model_folder(self.place))

    def keep_model(self, model: Model) -> None:
        """Keep the files of the index's `model` with it, so that nobody needs another copy."""
        self.store.documents.keep_model(model.fingerprint, model_content(model))
        self._loaded = Encoding(deepcopy(model))  # yours may learn further

    def check_model(self, model: Model) -> None:
        """Refuse a `model` whose vectors cannot be compared with those of the index."""
        check(
            model.fingerprint == self.identity.fingerprint,
            "the index was made with another model: use that one, or embed everything again with --new-generation",
        )

    def add(
        self,
        source: Source,
        *,
        thing: str | None = None,
        prune_missing: bool = False,
        progress: Progress | None = None,
        workers: Workers = Workers(),  # noqa: B008  # it is frozen
    ) -> Update:
        """Add images, or bring those of the same source up to date; only what is new or changed is embedded.

        `thing`: the column that says which thing a photo shows ("label": its class): from now on things answer. Its
        cells are kept as they are written, never as numbers. "id": from now on photos answer again.
        Nothing is removed unless `prune_missing` is set, and then only what came from the same source.
        `workers` embed: processes or a cluster, which see the images under the same names.
        """
        if vectors.holds_vectors(source):
            result = self.add_vectors(Path(str(source)), progress)
            if thing is not None:
                self.have_things(thing)
            return result
        listing = sources.listing(source, thing_column.texts(self.store, thing))
        thing_column.check_names((entry.item for entry in listing.entries), thing or self.thing)
        if thing is not None:
            columns = dict.fromkeys(name for entry in listing.entries for name in entry.item.columns)
            self.have_things(thing, list(columns))
        generation = self.identity.generation
        result = update(self.store, listing, lambda: self._encoding, generation, progress, workers)
        self.note("items added", added=result.added, changed=result.changed)
        if prune_missing:
            result.removed = prune(self.store, listing)
        return result

    def add_vectors(self, place: Path, progress: Progress | None = None) -> Update:
        """Add vectors made elsewhere, with their ids and columns: a file, or the shards of many workers."""
        result = vectors.load(self.store, place, progress)
        self.note("items added", added=result.added, changed=result.changed)
        return result

    @property
    def thing(self) -> str | None:
        """The column that says which thing a photo shows; None: photos answer, each for itself."""
        return thing_column.thing_column(self.store)

    def have_things(self, column: str, coming: Sequence[str] = ()) -> None:
        """From now on answers are things: the photos that have the same value in `column`; "id": photos again.

        `coming`: columns that photos are about to bring. A calibration that was about something else is dropped.
        """
        thing_column.have_things(self.store, column, coming)

    def approximate(self, on: bool, progress: Progress | None = None) -> None:
        """On PostgreSQL: answer from an approximate index and measure it where `on` is set, else exactly."""
        if isinstance(self.store, Approximating):
            self.store.approximate(on, progress)
        else:
            check(not on, "an index in a folder is exact and needs no approximation: that is for indexes on PostgreSQL")

    def ready(self) -> None:
        """Bring the cache up to date, so that the next search need not."""
        self.store.search(np.eye(1, self.identity.dim, dtype=np.float32), 1)

    def classify(self, source: Source, *, progress: Progress | None = None) -> list[Classified]:
        """The label of every picture, or why it cannot be read; refused without all shards."""
        labelled = {self.thing or "label": {"!=": None}}
        return classify(sources.listing(source), self.search, partial(self.search, where=labelled), progress)

    def remove(self, ids: Iterable[str] = (), where: Where = None) -> int:
        """Remove items by `ids`, or those that conditions select; how many there were."""
        chosen = list(dict.fromkeys(self._chosen(ids, where)))
        there = [item.id for item in self.store.items(chosen)] if len(chosen) <= FEW else chosen
        count = self.store.remove(there) if there else 0
        if count:
            self.store.log.append(*removed(there, count))
        return count

    def forget(self, ids: Iterable[str] = (), where: Where = None) -> Receipt:
        """Remove items, and marks of them, so that no file of the index holds a byte of them.

        `ids` and `where` as in `remove`. The index is written anew; the receipt says what is beyond its reach.
        """
        unfinished = self.store.documents.read(COPY) is not None
        check(not unfinished, "this index is a copy that is not complete: run lookalike copy again, then forget")
        chosen = self._chosen(ids, where)
        photos = [item.path for item in self.store.items(chosen) if item.path is not None]
        self.store.documents.write(HITS, None)
        forgotten = self.store.forget(chosen)
        if chosen:
            self.store.log.append(*removed(chosen, forgotten.items, "forgotten"))
        review = places.review_folder(self.place)
        known = [f"'{review}', where a review keeps vectors and names of them: delete it"] if review.is_dir() else []
        forgotten = replace(forgotten, beyond=[*forgotten.beyond, *known])
        return Receipt.of(self.shown, chosen, forgotten, photos)

    def note(self, action: str, **details: object) -> None:
        """An entry of the log: an `action` of the user of this process, with `details`; servers note their callers."""
        self.store.log.append(LogEntry(this_user(), action, detail=json.dumps(details)))

    def _chosen(self, ids: Iterable[str], where: Where) -> list[str]:
        chosen = list(ids)
        conditions = filters.parse(where)
        if conditions:
            chosen += [item.id for item in self.store.listed(conditions)]
        check(bool(chosen) or bool(conditions), "say what to remove: ids, or a condition")
        return chosen

    def search(
        self,
        query: Query = None,
        k: int = 10,
        *,
        where: Where = None,
        group: str | None = None,
        box: Box | None = None,
        like: Sequence[Query] = (),
        unlike: Sequence[Query] = (),
        plain: bool = False,
    ) -> Answer:
        """The `k` items nearest to `query`, a picture: a file, a PIL image, an array, an item's id, or a vector.

        `box` (x, y, width, height in pixels) searches inside a part of the picture; `like` and `unlike` are further
        examples, where things answer: further photos of the same one, and not it; `where` are conditions on columns;
        `group` gives things by another column ("id": photos); `plain` switches off what calibration switched on.
        """
        meant = ([] if query is None else [query]) + list(like)
        check(bool(meant), "give something to search for: an image, the id of an item, or a vector")
        check(box is None or len(meant) == 1, "a box is a part of one picture: search with that one alone")
        conditions = filters.parse(where)
        while True:
            identity, flip = self.identity, self._flip(plain)
            question = Question(
                self._pictures.examples(meant, identity.geometry, flip, box),
                self._pictures.examples(unlike, identity.geometry, flip),
                k,
                conditions,
                group,
                plain=plain,
                generation=identity.generation,
                part=box is not None,
            )
            (answer,) = self.answers([question])
            if isinstance(answer, GenerationError):  # the index has moved on to another model: embed by that one
                continue
            found = _raised(answer)
            if len(meant) > 1 or unlike or is_vector(meant[0]):
                return found
            return replace(found, explain=self._pictures.explaining(meant[0], self._flip(plain), box))

    def why(self, query: Query, item: str, *, box: Box | None = None, plain: bool = False) -> Why:
        """What the similarity of a `query` (a picture, or an item's id) and an `item` (its id) is made of.

        `box` and `plain` as in `search`. Both pictures go through the network once more.
        """
        check(not is_vector(query), "a vector has no picture to point at: give the picture that was searched for")
        return self._pictures.explaining(query, self._flip(plain), box)(item)

    def _flip(self, plain: bool) -> Callable[[], bool]:
        return cache(lambda: not plain and self.quality.flip)

    def picture(self, item: str) -> Tensor:
        """The picture of an `item` (its id), as it was embedded by the model of the index: 3 × h × w, uint8."""
        return self._pictures.of_item(item)

    def answer(
        self,
        vector: Vectors,
        k: int = 10,
        *,
        where: Where = None,
        group: str | None = None,
        leave_out: Sequence[str] = (),
        plain: bool = False,
    ) -> Answer:
        """The nearest items of one `vector`, without those whose ids are in `leave_out`, with a verdict.

        `plain` switches off what calibration switched on.
        """
        question = Question(list(vector), (), k, filters.parse(where), group, leave_out, plain)
        return _raised(self.answers([question])[0])

    def answers(self, questions: Sequence[Question]) -> list[Answer | Exception]:
        """An answer to each of `questions`, in one pass over the index where that can be, or why it has none."""
        with self.store.steady():
            thing = self.thing
            pooled = 1 if thing is None else self.quality.pooled
            return asking.answers(self.store, questions, Rules(self.calibration, thing, pooled), self._counts)

    @property
    def calibration(self) -> Calibration | None:
        """What a similarity means, if that was measured."""
        return kept.read(self.store, Calibration)

    @property
    def promise(self) -> str:
        """What sure answers promise; without a calibration what they could, by the classes of two photos or more."""
        calibration = self.calibration
        if calibration is not None:
            return calibration.promise
        column = self.thing or "label"
        named = self.store.summary([column], CLASSES).columns[column]
        return possible(sum(number > 1 for _, number in named.counts) if named.kind == "text" else None)

    @property
    def stale(self) -> str | None:
        """Why it should be calibrated again, if it should."""
        calibration = self.calibration
        if calibration is None:
            return None
        return calibration.stale(self.store.count(measuring.named(self.thing)), self.identity.generation)

    @property
    def quality(self) -> Quality:
        """What calibration has switched on."""
        return kept.read(self.store, Quality) or Quality()

    @property
    def reference(self) -> Reference | None:
        """What ordinary queries look like, if that was measured."""
        return kept.read(self.store, Reference)

    def calibrate(
        self,
        source: Source | None = None,
        precision: float | None = None,
        *,
        plain: bool = False,
        stage: Stage = lambda _: None,
    ) -> Calibrated:
        """Measure what answers mean here, and keep it with the index; `plain`: switch nothing on.

        `source`: further images of its classes; without them its own items are asked, each without itself.
        `precision`: how often an answer that is called sure must be right; without one, the highest level that a
        quarter of the answers reach. `stage(name)` is called where a part of it begins, and gives the progress of that
        part. Use classes that the model was not trained on: on those it was, answers look more reliable than they are.
        """
        return measuring.calibrate(self, lambda images: self._encoding(images), source, precision, plain, stage)

    def vectors_of(self, queries: Sequence[Query], box: Box | None = None, flip: bool = False) -> Vectors:
        """The `queries` as vectors, in their order; with `flip` pictures count together with their mirror images.

        `box`: the part of each picture that counts.
        """
        return asking.vectors_of(
            self.store, self._pictures.examples(queries, self.identity.geometry, lambda: flip, box)
        )


def _raised(answer: Answer | Exception) -> Answer:
    if isinstance(answer, Exception):
        raise answer
    return answer
