"""Where an index can be: a folder, or the address of a PostgreSQL server (of several: its shards)."""

import tempfile
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, get_args

from lookalike.cache import cache_folder
from lookalike.errors import UserError, check, install, unknown
from lookalike.geometry import Geometry
from lookalike.search.items import Identity
from lookalike.search.stores import Store, copying
from lookalike.search.stores.fields import WIDEST
from lookalike.search.stores.postgres.address import Address, addresses, is_address
from lookalike.search.stores.sharded.store import ShardedStore
from lookalike.search.stores.sqlite.store import FILE, SqliteStore

Place = str | Path
SHARD = "shard"  # the fact that tells which one a store is
SHORT = 5.0  # seconds for a shard that is gone: the others answer meanwhile


def opened(place: Place, complete: bool = False) -> Store:
    """The store that is there; with `complete` a search is refused where a shard does not answer."""
    if not is_address(place):
        return SqliteStore(Path(place))
    every = addresses(str(place))
    openers = [partial(_shard, address, number, len(every)) for number, address in enumerate(every, start=1)]
    return openers[0]() if len(every) == 1 else ShardedStore(openers, complete)


def created(place: Place, identity: Identity) -> Store:
    """A new, empty store; of several shards those that an earlier, stopped try has made already are taken as they are.

    A place that holds anything else is refused before any shard is made.
    """
    dim, geometries = identity.dim, get_args(Geometry)
    fits = isinstance(dim, int) and 0 < dim <= WIDEST
    check(fits, f"an index holds vectors of 1 to {WIDEST:,} dimensions, not of {dim!r}")
    if identity.geometry not in geometries:
        raise unknown("geometry", str(identity.geometry), geometries)
    if not is_address(place):
        return SqliteStore.create(Path(place), identity)
    every = addresses(str(place))
    missing = [
        number for number, address in enumerate(every, start=1) if not _made_before(address, number, every, identity)
    ]
    check(bool(missing), f"{shown(place)}: there is an index already: open it, or give other names with ?index=NAME")
    for number in missing:
        shard = _numbered(number, len(every))
        _postgres().create(every[number - 1], identity, {} if shard is None else {SHARD: shard})
    return opened(place)


def _made_before(address: Address, number: int, every: Sequence[Address], identity: Identity) -> bool:
    """Whether a stopped try has made this shard: an empty one."""
    if not _postgres().exists(address):
        return False
    taken = f"{address.shown}: there is an index already: open it, or give another name with ?index=NAME"
    check(len(every) > 1, taken)
    with closing(_shard(address, number, len(every))) as store:
        check(store.identity == identity and store.count() == 0, taken)
    return True


def _numbered(number: int, count: int) -> str | None:
    return None if count == 1 else f"{number} of {count}"


def _shard(address: Address, number: int, count: int) -> Store:
    """The store at one address, if it is the shard that it should be."""
    store: Store = _postgres()(address) if count == 1 else _postgres()(address, SHORT)
    fact = store.documents.read(SHARD)
    if fact != _numbered(number, count):
        store.close()
        what = "a whole index" if fact is None else f"shard {fact}"
        hint = "give all shards, in their order; lookalike copy makes another number of them"
        raise UserError(f"{address.shown} is {what}: {hint}")
    return store


def restored(place: Place, backup: Path) -> Path | None:
    """Make a place what a `backup` holds; where a folder keeps what it held before."""
    if not is_address(place):
        return SqliteStore.restore(Path(place), backup)
    with tempfile.TemporaryDirectory() as folder:
        SqliteStore.restore(Path(folder), backup)
        with closing(SqliteStore(Path(folder))) as source:
            identity = source.identity
            with closing(opened(place) if exists(place) else created(place, identity)) as target:
                copying.copy(source, target, replace_items=True)
    return None


def exists(place: Place) -> bool:
    """Whether there is an index, with all its shards."""
    if not is_address(place):
        return (Path(place) / FILE).is_file()
    return all(_postgres().exists(address) for address in addresses(str(place)))


def shown(place: Place) -> str:
    """A place for people: without passwords."""
    return ",".join(address.shown for address in addresses(str(place))) if is_address(place) else str(place)


def name_of(place: Place) -> str:
    """What a page calls an index.

    >>> name_of("shop.index"), name_of("postgresql://me@db/shops?index=vases"), name_of("postgresql://me@db/shop")
    ('shop', 'vases', 'shop')
    """
    if not is_address(place):
        return Path(place).resolve().name.removesuffix(".index")
    return addresses(str(place))[0].name


def review_folder(source: Place) -> Path:
    """Where a review of photos, or of an index, keeps what it found and what was said: NAME.review, beside them.

    >>> review_folder("photos/").name, review_folder("shop.index").name, review_folder("photos.review").name
    ('photos.review', 'shop.index.review', 'photos.review')
    """
    place = Path(source).expanduser()
    place = place.resolve() if place.name in ("", "..") else place
    check(bool(place.name), f"'{source}' has nothing beside it: give a folder of photos, a table or an index")
    return place if place.suffix == ".review" else place.with_name(f"{place.name}.review")


def model_folder(place: Place) -> Path:
    """Where the model of an index is unpacked: beside a folder's other files, else in the cache of the user."""
    return cache_folder() / "models" if is_address(place) else Path(place) / "model"


def _postgres() -> Any:
    try:
        from lookalike.search.stores.postgres.store import PostgresStore
    except ImportError as error:
        if error.name is None or error.name.split(".")[0] != "psycopg":
            raise
        raise UserError(f"an index on PostgreSQL needs psycopg: {install('pgvector')}") from None
    return PostgresStore
