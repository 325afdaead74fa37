"""Items of an index that are embedded by another model, for a map to learn from."""

import heapq
from hashlib import blake2b

from lookalike.progress import Progress
from lookalike.search.adding.encoding import Encoding
from lookalike.search.adding.generation import embedded
from lookalike.search.adding.update import BATCH
from lookalike.search.items import Identity
from lookalike.search.stores import Store, UnknownItemError
from lookalike.search.upgrading.maps import NewVectors, OldVectors

SHARE, FEWEST, MOST = 0.05, 500, 5_000  # items of the sample: this share, within these bounds
AHEAD = 3  # candidates for each place: some have no picture


def usual_size(items: int) -> int:
    return max(FEWEST, min(MOST, round(SHARE * items)))


def embed_sample(store: Store, encoding: Encoding, new: Identity, size: int, progress: Progress | None) -> None:
    """Fill the next generation with the vectors of a sample, in the order of a digest of their ids.

    What is there already counts, so that a sample that was interrupted goes on.
    """
    known = set(store.generations.filled(new)[0])
    if len(known) >= size:
        return
    drawn = heapq.nsmallest(AHEAD * size, (item.id for item in store.listed()), key=_lot)
    rest = [id_ for id_ in drawn if id_ not in known]
    for start in range(0, len(rest), BATCH):
        if len(known) >= size:
            return
        chosen = rest[start : start + min(BATCH, size - len(known))]
        items, vectors = embedded(store, encoding, store.items(chosen))
        store.generations.fill(new, items, vectors)
        known.update(item.id for item in items)
        if progress is not None:
            progress(len(known), size)


def embedded_sample(store: Store, new: Identity, size: int) -> tuple[list[str], OldVectors, NewVectors]:
    """The sample: ids, vectors that answer, and those of the next generation."""
    while True:
        ids, vectors = store.generations.filled(new)
        rows = heapq.nsmallest(size, range(len(ids)), key=lambda row: _lot(ids[row]))  # there may be more
        ids = [ids[row] for row in rows]
        try:
            return ids, store.vectors(ids), vectors[rows]
        except UnknownItemError:  # removed meanwhile
            continue


def _lot(id_: str) -> bytes:
    return blake2b(id_.encode(errors="surrogatepass"), digest_size=8).digest()
