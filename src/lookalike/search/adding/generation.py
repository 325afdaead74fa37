"""Another model for an index: everything is embedded again beside the old vectors, which answer until the switch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.errors import UserError, check
from lookalike.image_files import UnreadableError
from lookalike.models import Model
from lookalike.search.adding.update import BATCH, Progress
from lookalike.search.index import Index, identity_of
from lookalike.search.items import Item
from lookalike.search.model_copy import model_content
from lookalike.search.queries import pixels_of


def renew(index: Index, model: Model, drop_missing: bool = False, progress: Progress | None = None) -> list[str]:
    """Fill a new generation with the vectors of another model and switch to it; the items whose pictures are gone.

    Interrupted, it continues where it was. Items without a picture cannot be embedded again: with `drop_missing` they
    are removed, otherwise the old generation stays and they are named.
    """
    store = index.store
    check(model.fingerprint != store.identity.fingerprint, "the index has the vectors of this model already")
    identity = store.generations.upcoming()
    if identity is None or identity.fingerprint != model.fingerprint:
        store.documents.keep_model(model.fingerprint, model_content(model))
        identity = store.generations.begin(identity_of(model))
    gone: list[str] = []
    total, after = store.count(), ""
    while items := store.generations.unfilled(identity.generation, BATCH, after):
        readable, pixels = _read(index, items)
        gone += [item.id for item in items if item not in readable]
        if pixels:
            vectors = np.asarray(model.encode(pixels, backend="auto").numpy(), np.float32)
            store.generations.fill(identity.generation, [item.id for item in readable], vectors)
        after = items[-1].id
        if progress is not None:
            progress(total - len(store.generations.unfilled(identity.generation, total)), total)
    if gone and drop_missing:
        store.remove(gone)
    missing = store.generations.switch(identity.generation)
    if missing:
        if gone and not drop_missing:
            raise UserError(
                f"{len(gone):,} items have no picture any more, such as '{gone[0]}': the old vectors stay; "
                "put the files back, or drop those items with --prune"
            )
        return gone + renew(index, model, drop_missing, progress)  # added meanwhile
    return gone


def _read(index: Index, items: Sequence[Item]) -> tuple[list[Item], list[Any]]:
    readable, pixels = [], []
    for item in items:
        try:
            content = index.store.documents.pictures([item.id]).get(item.id) if item.path is None else Path(item.path)
            if content is None:
                continue
            pixels.append(pixels_of(content))
            readable.append(item)
        except (UserError, UnreadableError):
            continue
    return readable, pixels
