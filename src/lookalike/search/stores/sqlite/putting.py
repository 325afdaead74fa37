"""Items with vectors and pictures into the tables of SQLite, in the place of those with the same ids."""

import sqlite3
import time
from collections.abc import Mapping, Sequence

from lookalike.search.items import Item, Vectors
from lookalike.search.stores.fields import checked
from lookalike.search.stores.sqlite import rows
from lookalike.search.stores.sqlite.generations import identity_of, insert_vectors


def put(
    connection: sqlite3.Connection,
    items: Sequence[Item],
    vectors: Vectors,
    pictures: Mapping[str, bytes],
) -> None:
    """Every item gets a new key: that is how segments see that it is another one."""
    identity, ids = identity_of(connection), [item.id for item in items]
    vectors = checked(vectors, len(items), identity.dim)
    rows.remove(connection, list(rows.keys_of(connection, ids, complete=False).values()))
    first = rows.next_key(connection)
    rows.insert(connection, items, first, time.time())
    insert_vectors(connection, identity.generation, range(first, first + len(items)), vectors)
    kept = ((first + place, pictures.get(one)) for place, one in enumerate(ids))
    connection.executemany("INSERT INTO pictures VALUES (?, ?)", [row for row in kept if row[1]])
