"""The next generation of an index from a sample and a map: from then on the new model answers."""

import heapq
import json
import math
from collections.abc import Callable
from dataclasses import asdict
from hashlib import blake2b

from lookalike.errors import check
from lookalike.models import Model
from lookalike.progress import Progress, Stage
from lookalike.search.adding.encoding import Encoding
from lookalike.search.adding.generation import embedded
from lookalike.search.adding.update import BATCH
from lookalike.search.calibration import kept
from lookalike.search.items import Identity
from lookalike.search.model_copy import identity_of, model_content
from lookalike.search.queries import placed
from lookalike.search.stores import Store, UnknownItemError
from lookalike.search.stores.copying import UPGRADE
from lookalike.search.upgrading.maps import (
    ENOUGH,
    KINDS,
    MapChoice,
    NewVectors,
    OldVectors,
    VectorMap,
    choose,
    kept_choice,
)

SHARE, FEWEST, MOST = 0.05, 500, 5_000  # items of the sample: this share, within these bounds
AHEAD = 3  # candidates for each place: some have no picture
LEAST = 0.9  # of the new model's recall@10
BULK = 10_000  # mapped vectors of one transaction
Accepted = Callable[[MapChoice, bool], None]


def let_answer(
    store: Store, encoding: Encoding, least: float, sample: int | None, stage: Stage, accepted: Accepted
) -> None:
    """Embed a sample, map the other items, and switch."""
    new = _next_generation(store, encoding.model)
    known = kept_choice(store)
    size = known.sample if known is not None else usual_size(store.count()) if sample is None else sample
    embed_sample(store, encoding, new, size, stage("embedding a sample by the new model"))
    missing = True
    while missing:  # again where items were added meanwhile
        if store.generations.unfilled(new.generation, 1):
            _map_others(store, new, _learnt(store, new, size, least), stage("mapping the other items"))
        kept.drop(store)
        missing = bool(store.generations.switch(new.generation))
    choice = kept_choice(store)
    if choice is not None:
        accepted(choice, known is not None)


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


def _map_others(store: Store, new: Identity, apply: VectorMap, progress: Progress | None) -> None:
    total, done, after = store.count(), 0, ""
    while items := store.generations.unfilled(new.generation, BULK, after):
        try:
            old = store.vectors([item.id for item in items])
        except UnknownItemError:  # removed meanwhile
            continue
        store.generations.fill(new, items, placed(apply(old), new.geometry), mapped=True)
        done, after = done + len(items), items[-1].id
        if progress is not None:
            progress(done, max(total, done))


def _next_generation(store: Store, model: Model) -> Identity:
    """The generation of this model that is being filled, or a new one."""
    identity = store.generations.upcoming()
    if identity is not None and identity.fingerprint == model.fingerprint:
        return identity
    store.documents.write(UPGRADE, None)
    store.documents.keep_model(model.fingerprint, model_content(model))
    return store.generations.begin(identity_of(model))


def _learnt(store: Store, new: Identity, size: int, least: float) -> VectorMap:
    """The best map; refused, before anything is mapped, where it keeps too little."""
    ids, old, target = embedded_sample(store, new, size)
    check(
        len(ids) >= ENOUGH,
        f"only {len(ids):,} items of the sample have a picture, too few to learn a map from: put their files back",
    )
    choice = kept_choice(store)
    if choice is None:
        labels = {item.id: item.label for item in store.items(ids)}
        choice = choose(old, target, [labels.get(id_) for id_ in ids], new.geometry)
        check(
            choice.share >= least,
            f"the best map ({choice.kind}) keeps {choice.share:.0%} of the new model's recall@10 on a sample of "
            f"{choice.sample:,} items ({choice.mapped[choice.kind]:.3f}; the new model {choice.new:.3f}, the old one "
            f"{choice.old:.3f}), less than {least:.0%}: take a larger --sample, embed everything first with lookalike "
            f"index --new-generation, or accept it with --least {math.floor(100 * choice.share) / 100:g}",
        )
        store.documents.write(UPGRADE, json.dumps(asdict(choice)))
    return KINDS[choice.kind](old, target)
