"""Another model for an index: everything is embedded again beside the old vectors, which answer until the switch."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lookalike.errors import UserError, check
from lookalike.image_files import UnreadableError
from lookalike.models import Model
from lookalike.search.adding.update import BATCH, Progress
from lookalike.search.calibration import kept
from lookalike.search.index import Index, identity_of
from lookalike.search.items import Item, Vectors
from lookalike.search.model_copy import model_content
from lookalike.search.queries import pixels_of
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
    gone: list[str] = []
    total, after = store.count(), ""
    done = total - len(store.generations.unfilled(identity.generation, total))
    while items := store.generations.unfilled(identity.generation, BATCH, after):
        known, vectors = embedded(index, model, items)
        gone += missing(items, known)
        store.generations.fill(identity, known, vectors)
        done, after = done + len(items), items[-1].id
        if progress is not None:
            progress(done, max(total, done))
    if gone:
        check(
            drop_missing,
            f"{len(gone):,} items have no picture any more, such as '{gone[0]}': the old vectors stay; "
            "put the files back, or drop those items with --prune",
        )
        index.remove(gone)
    kept.drop(store)
    if store.generations.switch(identity.generation):  # some were added meanwhile
        return gone + renew(index, model, drop_missing, progress)
    index.note("model changed", fingerprint=model.fingerprint, mapped=0)
    return gone


def embedded(index: Index, model: Model, items: Sequence[Item]) -> tuple[list[Item], Vectors]:
    """Those items whose pictures can be read, and their vectors."""
    known, pixels = [], []
    for item in items:
        try:
            content = index.store.documents.pictures([item.id]).get(item.id) if item.path is None else Path(item.path)
            if content is None:
                continue
            pixels.append(pixels_of(content))
            known.append(item)
        except (UserError, UnreadableError):
            continue
    if not known:
        return [], np.empty((0, identity_of(model).dim), np.float32)
    return known, np.asarray(model.encode(pixels, backend="auto").numpy(), np.float32)


def missing(items: Sequence[Item], known: Sequence[Item]) -> list[str]:
    """The ids of items that are not among those `known`."""
    ids = {item.id for item in known}
    return [item.id for item in items if item.id not in ids]
