"""Another model for an index: everything is embedded again beside the old vectors, which answer until the switch."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from lookalike.errors import UserError, check
from lookalike.image_files import UnreadableError
from lookalike.models import Model
from lookalike.ordered_map import in_order
from lookalike.progress import Progress
from lookalike.search.adding.encoding import Encoding, Inputs
from lookalike.search.adding.update import BATCH, READERS
from lookalike.search.calibration import kept
from lookalike.search.index import Index
from lookalike.search.items import Item, Vectors
from lookalike.search.model_copy import identity_of, model_content
from lookalike.search.queries import pixels_of
from lookalike.search.stores import Store
from lookalike.search.stores.copying import UPGRADE


def renew(index: Index, model: Model, drop_missing: bool = False, progress: Progress | None = None) -> list[str]:
    """Fill a new generation with the vectors of another model and switch to it; the items whose pictures are gone.

    Interrupted, it continues where it was. Items without a picture cannot be embedded again: with `drop_missing` they
    are removed, otherwise the old generation stays and they are named.
    """
    store = index.store
    check(
        model.fingerprint != store.identity.fingerprint,
        "the index has the vectors of this model already; lookalike upgrade embeds those items that are mapped",
    )
    identity = store.generations.upcoming()
    if identity is None or identity.fingerprint != model.fingerprint or store.documents.read(UPGRADE) is not None:
        store.documents.keep_model(model.fingerprint, model_content(model))
        identity = store.generations.begin(identity_of(model))
        store.documents.write(UPGRADE, None)  # nothing is mapped from here on
    encoding, gone = Encoding(model), list[str]()
    total, after = store.count(), ""
    done = total - len(store.generations.unfilled(identity.generation, total))
    while items := store.generations.unfilled(identity.generation, BATCH, after):
        known, vectors = embedded(store, encoding, items)
        gone += missing(items, known)
        store.generations.fill(identity, known, vectors)
        done, after = done + len(items), items[-1].id
        if progress is not None:
            progress(done, max(total, done))
    if gone:
        check(
            drop_missing,
            f"{len(gone):,} items no longer have a picture, such as '{gone[0]}': the old vectors stay; "
            "put the files back, or drop those items with --prune",
        )
        index.remove(gone)
    kept.drop(store)
    if store.generations.switch(identity.generation):  # some were added meanwhile
        return gone + renew(index, model, drop_missing, progress)
    index.note("model changed", fingerprint=model.fingerprint, mapped=0)
    return gone


def embedded(store: Store, encoding: Encoding, items: Sequence[Item]) -> tuple[list[Item], Vectors]:
    """Those items whose pictures can be read, and their vectors; threads read while the network works."""
    known: list[Item] = []

    def inputs(row: int) -> Inputs | None:
        item = items[row]
        content = store.documents.pictures([item.id]).get(item.id) if item.path is None else Path(item.path)
        try:
            pixels = None if content is None else pixels_of(content)
        except (UserError, UnreadableError):
            return None
        return None if pixels is None else encoding.ready(pixels)

    def readable() -> Iterator[Inputs]:
        for item, each in zip(items, in_order(inputs, len(items), READERS), strict=True):
            if each is not None:
                known.append(item)
                yield each

    vectors = encoding.of_ready(readable())
    return known, vectors


def missing(items: Sequence[Item], known: Sequence[Item]) -> list[str]:
    """The ids of items that are not among those `known`."""
    ids = {item.id for item in known}
    return [item.id for item in items if item.id not in ids]
