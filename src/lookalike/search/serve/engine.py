"""What answers inside one worker: threads decode, one embeds, one searches, one writes; each takes what has come in.

A picture is embedded by the model of one generation and searched for in the same one: where the index has moved on in
between, it is embedded again by the new model. `start` loads everything; before that nothing is answered.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from torch import Tensor

from lookalike.errors import UserError
from lookalike.search.asking import Question
from lookalike.search.filters import Filter
from lookalike.search.heat import Why
from lookalike.search.index import Index
from lookalike.search.items import Answer, Item, Mark, Vectors
from lookalike.search.log import LogEntry, subject_of
from lookalike.search.queries import combined
from lookalike.search.serve.decoders import Decoders
from lookalike.search.serve.keyring import Keyring
from lookalike.search.serve.loaded_models import LoadedModel, LoadedModels, embedded
from lookalike.search.serve.meters import Meters, Times
from lookalike.search.serve.pictures import ALONE, Upload, inputs_of, kept_picture, ready_of
from lookalike.search.serve.refusals import Refusal, busy, given_up, not_ready
from lookalike.search.serve.settings import Settings
from lookalike.search.serve.stages import SlowError, Stage
from lookalike.search.serve.watcher import Watcher, as_it_was, canaries
from lookalike.search.stores import GenerationError, StorageError
from lookalike.search.upgrading.hits import mapped_hits, note
from lookalike.search.why import explained, ready, seen

TOGETHER = 16  # pictures that go through the network at once
QUERIES = 32  # that share one pass over the index
ATTEMPTS = 5  # to ask within one generation: each new one is a new model
Result = TypeVar("Result")


@dataclass(frozen=True)
class Query:
    """A search as it came in."""

    images: Sequence[Upload] = ()
    items: Sequence[str] = ()
    not_images: Sequence[Upload] = ()
    not_items: Sequence[str] = ()
    where: Filter = ()
    group: str | None = None
    k: int = 12

    @property
    def name(self) -> str:
        """What feedback calls it."""
        return [*(upload.digest for upload in self.images), *(f"item:{name}" for name in self.items)][0]

    @property
    def ordinary(self) -> bool:
        """Whether it is one whole picture, asked against all items: such queries an index is calibrated with."""
        examples = (len(self.images), len(self.items), len(self.not_images), len(self.not_items))
        whole = examples == (1, 0, 0, 0) and self.images[0].box is None
        return whole and not self.where and self.group is None


class Engine:
    """One index, ready to answer many at a time."""

    def __init__(self, settings: Settings, meters: Meters) -> None:
        self.settings, self.meters = settings, meters
        self.index = Index.open(settings.place)
        self.watcher = Watcher(self.index, meters.worker, settings.workers, not settings.read_only)
        self.keyring = Keyring(settings.token)
        with suppress(*(StorageError,) if settings.token else ()):  # unknown keys let nobody in, and no keys everybody
            self.keyring.refresh(self.index.store.log)
        self.ready = False
        self.waiting = 0
        self._models = LoadedModels(self.index)
        self._flip = self.index.quality.flip  # as of the last questions
        self._counted: tuple[str, int] = ("", 0)
        self._found: Counter[str] = Counter()  # mapped items among the hits, which an upgrade embeds first
        self._decoders = Decoders(settings.pixels)
        self._embedding: Stage[tuple[LoadedModel, Tensor], Vectors] = Stage("network", embedded, TOGETHER)
        self._searching: Stage[Question, Answer] = Stage("search", self._answers, QUERIES, settings.searching)
        self._explaining: Stage[Callable[[], Why], Why] = Stage("why", lambda jobs: [jobs[0]()], 1, settings.searching)
        self._writing: Stage[Callable[[], object], object] = Stage("write", lambda jobs: [jobs[0]()], 1)

    def start(self) -> None:
        """Load the model and the cache, and ask once: the first question compiles the scan."""
        self._models.load()
        self.index.ready()
        self._models.warm_up()
        self.ready = True

    @property
    def hangs(self) -> bool:
        """Whether searches hang, and only a new process helps."""
        return self._searching.hangs

    def stop(self) -> None:
        ended = [stage.stop() for stage in (self._embedding, self._searching, self._explaining, self._writing)]
        self._decoders.stop()
        if all(ended):  # a search that hangs still has its connection
            self.index.close()

    def look_ahead(self) -> None:
        """Look for new keys; load the model of a generation that is being filled, so that its switch is no wait."""
        self.keyring.refresh(self.index.store.log)
        self.watcher.refresh()
        self._models.look_ahead()

    def keep(self) -> None:
        """Write down what was seen of queries and of hits."""
        self.watcher.keep()
        found, self._found = self._found, Counter()
        if found and not self.settings.read_only:
            note(self.index.store, found)

    def _answers(self, questions: Sequence[Question]) -> list[Answer | Exception]:
        self._flip = self.index.quality.flip
        self._count()
        return self.index.answers(questions)

    def _count(self) -> None:
        version = self.index.store.version()
        if self._counted[0] != version:
            with suppress(StorageError):  # a shard is down: as many as there were
                self._counted = version, len(self.index)

    @property
    def items(self) -> int:
        """How many there are, as of the last questions."""
        return self._counted[1]

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """A place among those that wait; none left: try again later."""
        self.check_free()
        self.waiting += 1
        self.meters.waiting(self.waiting)
        try:
            yield
        finally:
            self.waiting -= 1
            self.meters.waiting(self.waiting)

    def check_free(self) -> None:
        if not self.ready:
            raise not_ready()
        if self.waiting >= self.settings.waiting:
            raise busy()

    async def search(self, query: Query) -> tuple[Answer, dict[str, float]]:
        """The answer, and the milliseconds of its stages."""
        times = Times()
        ordinary: list[Vectors] = []

        async def ask(network: LoadedModel | None) -> Answer:
            vectors = await self._vectors([*query.images, *query.not_images], network, times)
            like, unlike = vectors[: len(query.images)], vectors[len(query.images) :]
            ordinary[:] = like if query.ordinary else []
            question = Question(
                [*like, *query.items],
                [*unlike, *query.not_items],
                query.k,
                query.where,
                query.group,
                generation=None if network is None else network.identity.generation,
                part=any(upload.box is not None for upload in query.images),
            )
            with times.measure("search"):
                return await self._searching.do(question)

        answer = await self._within_a_generation(ask, needs_network=bool(query.images or query.not_images))
        self.meters.stages(times.of)
        self.watcher.answered(query.name, ordinary[0][None] if ordinary else None, answer)
        self._found.update(mapped_hits(answer))
        return answer, times.of

    async def why(self, query: Upload | str, item: str) -> Why:
        """What the similarity of a picture, or of an item, and a hit is made of."""

        async def explain(network: LoadedModel | None) -> Why:
            assert network is not None
            model, how = network.model, network.model.preprocessing
            upload = query if isinstance(query, Upload) else None
            picture = None if upload is None else await self._decoders.do(ready_of, upload, how, self._flip)

            def job() -> Why:
                with ALONE:  # the pictures of the index may be large
                    one = picture or ready(how, self.index.picture(str(query)))
                    hit = ready(how, self.index.picture(item))
                return explained(seen(model, one), seen(model, hit), network.identity.geometry)

            return await self._explaining.do(job)

        return await self._within_a_generation(explain, needs_network=True)

    async def add(self, item: Item, upload: Upload, who: str) -> None:
        """Embed a picture and keep it; returns when it is on the disk."""
        times = Times()

        async def put(network: LoadedModel | None) -> None:
            assert network is not None
            vectors = await self._vectors([upload], network, times, flip=False)
            pictures, generation = {item.id: upload.content}, network.identity.generation
            change = partial(self.index.store.put, [item], np.stack(vectors), pictures, generation)
            await self._write(change, LogEntry(who, "item added", subject_of(item.id)))

        await self._within_a_generation(put, needs_network=True)

    async def remove(self, id_: str, who: str) -> bool:
        with self.admitted():
            change = partial(self.index.store.remove, [id_])
            return bool(await self._write(change, LogEntry(who, "item removed", subject_of(id_))))

    async def upright(self, upload: Upload) -> bytes:
        """A marked query as a picture that is kept: the part that was meant, upright, with nothing else of the file."""
        with self.admitted():
            return await self._decoders.do(kept_picture, upload)

    async def mark(self, mark: Mark, picture: bytes | None, who: str) -> int:
        with self.admitted():
            change = partial(self.index.store.marks.add, mark, picture)
            word = "marked right" if mark.right else "marked wrong"
            number = await self._write(change, LogEntry(who, word, subject_of(mark.item)))
            self.watcher.marked(mark.query, mark.item, mark.right)
            return number

    async def unmark(self, number: int, who: str) -> bool:
        with self.admitted():
            change = partial(self.index.store.marks.remove, number)
            return await self._write(change, LogEntry(who, "mark taken back", f"mark {number}"))

    async def _write(self, change: Callable[[], Result], entry: LogEntry) -> Result:
        """Make a change, and note whose it was unless there was nothing to change."""

        def noted() -> Result:
            result = change()
            if result is None or result:
                self.index.store.log.append(entry)
            return result

        return await self._writing.do(noted)  # type: ignore[return-value]

    async def try_canaries(self) -> None:
        """Search for pictures of items as a caller would: each has its vector still, and nothing farther is found."""
        network = self._models.current
        if network is None:
            return
        identity = network.identity
        for item, content in await asyncio.to_thread(canaries, self.index.store):
            try:
                (vector,) = await self._vectors([Upload(content)], network, Times(), flip=False)
                (own,) = await asyncio.to_thread(self.index.store.vectors, [item.id])
                question = Question([vector], (), 1, group="id", plain=True, generation=identity.generation)
                answer = await self._searching.do(question)
            except (Refusal, UserError, SlowError, TimeoutError):  # it cannot be decoded, or was removed meanwhile
                continue
            self.watcher.canary(as_it_was(answer, vector, own, identity.geometry))

    async def _within_a_generation(
        self, ask: Callable[[LoadedModel | None], Awaitable[Result]], needs_network: bool
    ) -> Result:
        with self.admitted():
            try:
                async with asyncio.timeout(self.settings.patience):
                    for _ in range(ATTEMPTS):
                        network = self._models.current if needs_network else None
                        if needs_network and network is None:
                            raise Refusal(
                                400, "This index holds vectors and has no model. Search by the id of an item."
                            )
                        try:
                            return await ask(network)
                        except GenerationError:
                            await asyncio.to_thread(self._models.load)
                        except SlowError:
                            raise given_up(self.settings.searching) from None
            except TimeoutError:
                pass
            raise busy(5)

    async def _vectors(
        self, uploads: Sequence[Upload], network: LoadedModel | None, times: Times, flip: bool | None = None
    ) -> list[Vectors]:
        """One vector for each picture, with its mirror image where calibration switched that on."""
        if network is None or not uploads:
            return []
        both = self._flip if flip is None else flip
        how = network.model.preprocessing
        with times.measure("decode"):
            inputs = await asyncio.gather(*(self._decoders.do(inputs_of, upload, how, both) for upload in uploads))
        with times.measure("network"):
            rows = await asyncio.gather(*(self._embedding.do((network, each)) for each in inputs))
        return [combined(views, None, network.identity.geometry)[0] for views in rows]
