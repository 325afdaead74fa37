"""Items of an index block by block, and what its columns hold."""

from collections.abc import Sequence
from typing import Any

from lookalike.search.filters import Filter
from lookalike.search.items import Item, Value, Vectors
from lookalike.search.stores import fields
from lookalike.search.stores.fields import adapted
from lookalike.search.stores.postgres.database import Snapshot
from lookalike.search.stores.postgres.rows import clause, number, one, plain, select, select_vectors


def block(snapshot: Snapshot, where: Filter, after: str, count: int) -> tuple[str, list[Any]]:
    """The next items by id, as the rest of a statement."""
    text, parameters = clause(snapshot, where)
    return f"WHERE id > %s AND {text} ORDER BY id LIMIT {count}", [after, *parameters]


def scanned(snapshot: Snapshot, where: Filter, after: str, count: int) -> tuple[list[Item], Vectors]:
    return select_vectors(snapshot, *block(snapshot, where, after, count))


def listed(snapshot: Snapshot, where: Filter, after: str, count: int) -> list[Item]:
    return select(snapshot, *block(snapshot, where, after, count))


def count(snapshot: Snapshot, where: Filter) -> int:
    text, parameters = clause(snapshot, where)
    return int(one(snapshot, f"SELECT count(*) FROM {snapshot.table} WHERE {text}", parameters))


def distinct(snapshot: Snapshot, column: str) -> int:
    name = fields.physical(snapshot.names, column)
    return int(one(snapshot, f"SELECT count(DISTINCT {name}) FROM {snapshot.table}"))


def counted(snapshot: Snapshot, column: str, most: int) -> list[tuple[Value, int]]:
    name = fields.physical(snapshot.names, column)
    statement = f"""SELECT {name}, count(*) AS times FROM {snapshot.table} WHERE {name} IS NOT NULL GROUP BY {name}
                    ORDER BY times DESC, {name} LIMIT %s"""
    return [(plain(value), int(times)) for value, times in snapshot.connection.execute(statement, (most,))]


def first_of(snapshot: Snapshot, column: str, values: Sequence[Value]) -> dict[Value, Item]:
    name, result = fields.physical(snapshot.names, column), {}
    for value in values:
        stored = adapted(value, snapshot.names[column][1])
        fitting = stored if isinstance(stored, str) else number(stored)
        for item in select(snapshot, f"WHERE {name} = %s ORDER BY key LIMIT 1", (fitting,)):
            result[value] = item
    return result


def extent(snapshot: Snapshot, column: str) -> tuple[Value, Value]:
    name = fields.physical(snapshot.names, column)
    least, most = (one(snapshot, f"SELECT {which}({name}) FROM {snapshot.table}") for which in ("min", "max"))
    return least, most


def newest(snapshot: Snapshot, count: int) -> list[Item]:
    return select(snapshot, f"ORDER BY added DESC, key DESC LIMIT {count}", ())
