"""Plain pgvector as its README shows it: one table, COPY, an index on each column of a filter, HNSW."""

from collections.abc import Callable
from typing import Any

import numpy as np
from psycopg.types.numeric import Int4, Int8

from benchmarks.search import K

TABLE = "CREATE TABLE items (id bigserial PRIMARY KEY, embedding vector({width}), tenth integer, hundredth integer)"
GRAPH = "CREATE INDEX ON items USING hnsw (embedding vector_ip_ops)"


def asking(connection: Any) -> Callable[[np.ndarray, tuple[str, int] | None], list[int]]:
    def ask(query: np.ndarray, condition: tuple[str, int] | None) -> list[int]:
        where = "" if condition is None else f"WHERE {condition[0]} = {condition[1]}"
        statement = f"SELECT * FROM items {where} ORDER BY embedding <#> %s LIMIT {K}"
        return [int(row[0]) for row in connection.execute(statement, (query,), binary=True)]

    return ask


def load(connection: Any, items: np.ndarray) -> None:
    connection.execute(TABLE.format(width=items.shape[1]))
    columns = "id, embedding, tenth, hundredth"
    with connection.cursor().copy(f"COPY items ({columns}) FROM STDIN (FORMAT binary)") as copy:
        for row, vector in enumerate(items):
            copy.write_row((Int8(row), vector, Int4(row % 10), Int4(row % 100)))
    for column in ("tenth", "hundredth"):
        connection.execute(f"CREATE INDEX ON items ({column})")
    connection.execute("VACUUM ANALYZE items")
