"""Another model for an index, which answers by it as soon as a sample is embedded: the other items are mapped at first.

1. Some items are embedded by the new model, beside the vectors that answer. 2. A map from old vectors to new ones is
learnt from them, and refused where it keeps too little of the new model's recall. 3. All other items get mapped
vectors, and the new generation answers. 4. Mapped items are embedded again, those that searches have found first. Every
batch is one transaction, and every part continues where it was: whatever was killed, the same call goes on.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from lookalike.errors import check
from lookalike.models import Model
from lookalike.progress import Progress, Stage
from lookalike.search.adding.encoding import Encoding
from lookalike.search.adding.generation import embedded, missing
from lookalike.search.adding.update import BATCH
from lookalike.search.calibration import kept
from lookalike.search.index import Index
from lookalike.search.items import Item
from lookalike.search.stores import GenerationError, Store
from lookalike.search.stores.copying import UPGRADE
from lookalike.search.upgrading import hits
from lookalike.search.upgrading.mapping import LEAST, Accepted, let_answer
from lookalike.search.upgrading.maps import MapChoice, kept_choice


@dataclass(frozen=True)
class Upgraded:
    """What an upgrade has come to."""

    choice: MapChoice | None  # None: the sample was the whole index
    embedded: int  # items that got a vector of the new model in the place of a mapped one
    gone: list[str]  # items without a picture: they stay mapped, unless they were dropped


def upgrade(
    index: Index,
    model: str | Path | Model,
    *,
    least: float = LEAST,
    sample: int | None = None,
    drop_missing: bool = False,
    stage: Stage = lambda _: None,
    accepted: Accepted = lambda *_: None,
) -> Upgraded:
    """Let an index answer by another `model` at once, and embed its items again while it does.

    `least`: the share of the new model's recall@10 that the map must keep on held-out items. `sample`: how
    many items it learns from; None: a twentieth, at least 500 and at most 5,000. Items without a picture keep the
    mapped vector; with `drop_missing` they are removed. `stage(name)` is called where a part of the work begins, and
    gives the progress of that part. `accepted(choice, before)` is called once the new model answers by a map; `before`:
    an earlier call chose it, and `least` and `sample` have no say. Interrupted at any point, it continues where it was.
    """
    store, loaded = index.store, model if isinstance(model, Model) else Model.load(model)
    encoding = Encoding(loaded)
    check(store.identity.fingerprint is not None, "this index has no model: its vectors come from elsewhere")
    if store.identity.fingerprint != encoding.fingerprint:
        let_answer(store, encoding, least, sample, stage, accepted)
        index.note("model changed", fingerprint=encoding.fingerprint, mapped=store.generations.mapped_count())
    else:
        known = kept_choice(store)
        mapped = known is not None or store.generations.mapped_count()
        check(bool(mapped), "the index has the vectors of this model already")
        if known is not None:
            accepted(known, True)
    choice = kept_choice(store)
    done, gone = _embed_mapped(store, encoding, stage("embedding mapped items again"))
    if drop_missing and gone:
        index.remove(gone)
    if not isinstance(model, Model):
        kept.adopt(store, Path(model), loaded)
    for name in (hits.HITS, UPGRADE):
        store.documents.write(name, None)
    return Upgraded(choice, done, gone)


def _embed_mapped(store: Store, encoding: Encoding, progress: Progress | None) -> tuple[int, list[str]]:
    """The last part: how many items were embedded, and those that have no picture."""
    done, gone = 0, dict[str, None]()
    identity, total = store.identity, store.generations.mapped_count()
    if identity.fingerprint != encoding.fingerprint:
        raise GenerationError
    for items in _mapped(store, gone):
        known, vectors = embedded(store, encoding, items)
        gone |= dict.fromkeys(missing(items, known))
        store.generations.settle(identity.generation, [item.id for item in known], vectors)
        done += len(known)
        if progress is not None:
            progress(done + len(gone), max(total, done + len(gone)))
    return done, list(gone)


def _mapped(store: Store, gone: Collection[str]) -> Iterator[list[Item]]:
    """Batches of mapped items: those that searches have found, then the others by their ids; `gone` are passed over.

    The last round finds none: an item that was passed may have been written again, with its mapped vector.
    """
    after, found = "", False
    while True:
        items = [item for item in hits.first(store) if item.id not in gone][:BATCH]
        if not items:
            following = store.generations.mapped(BATCH, after)
            if not following and not found:
                return
            items = [item for item in following if item.id not in gone]
            after, found = (following[-1].id, found or bool(items)) if following else ("", False)
        if items:
            yield items
