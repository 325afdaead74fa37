"""Items of an index block by block, and what its columns hold."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lookalike.search.filters import Filter, Kind
from lookalike.search.items import Item, Value, Vectors
from lookalike.search.stores import Column, GenerationError, Summary, fields
from lookalike.search.stores.fields import adapted
from lookalike.search.stores.postgres.database import Snapshot
from lookalike.search.stores.postgres.rows import clause, number, one, plain, select, select_vectors


def block(snapshot: Snapshot, where: Filter, after: str, count: int) -> tuple[str, list[Any]]:
    """The next items by id, as the rest of a statement."""
    text, parameters = clause(snapshot, where)
    return f"WHERE id > %s AND {text} ORDER BY id LIMIT {count}", [after, *parameters]


def scanned(snapshot: Snapshot, generation: int, where: Filter, after: str, count: int) -> tuple[list[Item], Vectors]:
    if snapshot.identity.generation != generation:
        raise GenerationError
    return select_vectors(snapshot, *block(snapshot, where, after, count))


def listed(snapshot: Snapshot, where: Filter, after: str, count: int) -> list[Item]:
    return select(snapshot, *block(snapshot, where, after, count))


def count(snapshot: Snapshot, where: Filter) -> int:
    text, parameters = clause(snapshot, where)
    return int(one(snapshot, f"SELECT count(*) FROM {snapshot.table} WHERE {text}", parameters))


def summary(snapshot: Snapshot, names: Sequence[str], values: int, newest: int) -> Summary:
    columns = {
        name: column(snapshot, fields.physical(snapshot.names, name), snapshot.names[name][1], values) for name in names
    }
    return Summary(columns, select(snapshot, f"ORDER BY added DESC, key DESC LIMIT {newest}", ()) if newest else [])


def column(snapshot: Snapshot, name: str, kind: Kind, values: int) -> Column:
    """What a column of the table holds."""
    if kind == "number":
        least, most = (one(snapshot, f"SELECT {which}({name}) FROM {snapshot.table}") for which in ("min", "max"))
        return Column(kind, least=least, most=most)
    distinct = one(snapshot, f"SELECT count(DISTINCT {name}) FROM {snapshot.table}")
    statement = f"""SELECT {name}, count(*) AS times FROM {snapshot.table} WHERE {name} IS NOT NULL GROUP BY {name}
                    ORDER BY times DESC, {name} LIMIT %s"""
    counts = snapshot.connection.execute(statement, (values,)).fetchall() if values else []
    return Column(kind, int(distinct), [(plain(value), int(times)) for value, times in counts])


def sample(snapshot: Snapshot, count: int) -> list[Item]:
    """The next items after keys that are drawn."""
    first, last = (one(snapshot, f"SELECT {which}(key) FROM {snapshot.table}") for which in ("min", "max"))
    drawn = [] if first is None else np.random.default_rng().integers(first, last, count, endpoint=True).tolist()
    each = f"CROSS JOIN LATERAL (SELECT key FROM {snapshot.table} WHERE key >= drawn ORDER BY key LIMIT 1) AS next"
    chosen = f"SELECT DISTINCT next.key FROM unnest(%s::bigint[]) AS drawn {each}"
    return select(snapshot, f"WHERE key IN ({chosen}) ORDER BY random()", (drawn,))


def first_of(snapshot: Snapshot, column: str, values: Sequence[Value]) -> dict[Value, Item]:
    name, result = fields.physical(snapshot.names, column), {}
    for value in values:
        stored = adapted(value, snapshot.names[column][1])
        fitting = stored if isinstance(stored, str) else number(stored)
        for item in select(snapshot, f"WHERE {name} = %s ORDER BY key LIMIT 1", (fitting,)):
            result[value] = item
    return result
