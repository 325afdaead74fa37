"""The column of an index that says which thing a photo shows: from then on things answer."""

from collections.abc import Iterable, Sequence

from lookalike.errors import check, unknown
from lookalike.search.adding.sources import RESERVED
from lookalike.search.calibration import kept
from lookalike.search.items import Item
from lookalike.search.stores import Store
from lookalike.search.stores.copying import THING


def thing_column(store: Store) -> str | None:
    """None: photos answer, each for itself."""
    return store.documents.read(THING)


def have_things(store: Store, column: str, coming: Sequence[str]) -> None:
    """Let photos with the same value in `column` be one thing; "id": none. `coming`: columns about to be brought."""
    kinds, before = store.columns(), thing_column(store)
    known = ["label", "id", *(name for name in {*kinds, *coming} if name not in RESERVED)]
    if column not in known:
        raise unknown("column of things", column, known)
    thing = None if column == "id" else column
    if thing == before:
        return
    if kinds.get(column) == "number":
        check_names(store.listed(), thing)
    if (thing or "label") != (before or "label"):
        kept.drop(store)
    store.documents.write(THING, thing)


def texts(store: Store, thing: str | None = None) -> set[str]:
    """Columns whose cells are kept as they are written: those that hold texts, and the one that names things."""
    kinds, named = store.columns(), thing or thing_column(store)
    return {name for name in (*kinds, *([] if named is None else [named])) if kinds.get(name) != "number"}


def check_names(items: Iterable[Item], thing: str | None) -> None:
    """Refuse fractions as names of things: 12.1 may have been written 12.10, which is another article."""
    for item in items if thing is not None else ():
        name = item.value(str(thing))
        check(
            not isinstance(name, float) or name.is_integer(),
            f"'{thing}' holds numbers in this index, where 12.10 is the same as 12.1, so {name} names no thing: make "
            f"an index whose first photos are added with --thing {thing}, which keeps names as they are written",
        )
