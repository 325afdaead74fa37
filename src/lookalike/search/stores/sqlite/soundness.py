"""Whether an index in SQLite is sound: its cells are what an index writes, items have vectors, no page is damaged.

SQLite lets a stranger write anything into any column, and a flipped bit turns a text into something that is none.
"""

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from lookalike.files import open_regular
from lookalike.search.log import LATEST
from lookalike.search.stores.fields import checked
from lookalike.search.stores.sqlite.generations import identity_of

MANY = bytes.fromhex("d9d505f920a163d7")  # ends the journal of a change of several databases, which names a file
NAMES = r"\(\w+(?:, ?\w+)*\)"
WRITTEN = re.compile(  # what stands in the schema of an index: nothing that is computed, and one program
    rf"CREATE TABLE \w+ ?\((?:[\w ,]|{NAMES})*\)(?: WITHOUT ROWID)?"
    rf"|CREATE INDEX \w+ ON \w+ ?{NAMES}"
    r"|CREATE TRIGGER log_no_\w+ BEFORE (?:UPDATE|DELETE) ON log BEGIN SELECT RAISE\(ABORT, '[\w ]+'\); END"
)
TEXT = "typeof({0}) = 'text' AND is_utf8(CAST({0} AS BLOB))"
WHOLE, BYTES = "typeof({0}) = 'integer'", "typeof({0}) = 'blob'"
NUMBER, COUNT = "typeof({0}) IN ('integer', 'real')", f"{WHOLE} AND {{0}} > 0"
TIME = f"{NUMBER} AND {{0}} BETWEEN 0 AND {LATEST}"
MAYBE_TEXT, MAYBE_WHOLE = f"({{0}} IS NULL OR {TEXT})", f"({{0}} IS NULL OR {WHOLE})"
VALUES = {"text": f"({{0}} IS NULL OR {NUMBER} OR {TEXT})", "number": f"({{0}} IS NULL OR {NUMBER})"}
CELLS: Mapping[str, Mapping[str, str]] = {
    "generations": {
        "number": COUNT,
        "fingerprint": MAYBE_TEXT,
        "geometry": "{0} IN ('sphere', 'ball', 'none')",
        "dim": COUNT,
        "current": "{0} IN (0, 1)",
    },
    "facts": {"name": TEXT, "value": TEXT},
    "models": {"fingerprint": TEXT, "name": TEXT, "content": BYTES},
    "columns": {"position": COUNT, "name": TEXT, "kind": "{0} IN ('text', 'number')"},
    "items": {
        "key": COUNT,
        "id": TEXT,
        "path": f"({MAYBE_TEXT} OR {BYTES})",
        "label": MAYBE_TEXT,
        "root": MAYBE_TEXT,
        "size": MAYBE_WHOLE,
        "modified": MAYBE_WHOLE,
        "digest": MAYBE_TEXT,
        "added": TIME,
    },
    "changes": {"number": COUNT, "token": TEXT, "time": NUMBER},
    "removals": {"key": COUNT, "change": COUNT},
    "pictures": {"key": COUNT, "content": BYTES},
    "marks": {
        "number": COUNT,
        "query": TEXT,
        "query_item": MAYBE_TEXT,
        "item": TEXT,
        "correct": "{0} IN (0, 1)",
        "time": NUMBER,
        "author": MAYBE_TEXT,
    },
    "log": {"number": COUNT, "time": NUMBER, "who": TEXT, "action": TEXT, "subject": TEXT, "detail": TEXT},
    "asked": {"query": TEXT, "content": BYTES},
    "mapped": {"key": COUNT},
}
LATER = {"author"}  # columns that come with what is first kept in them


def check_schema(connection: sqlite3.Connection) -> None:
    """Refuse views, triggers and expressions that a stranger has put in: they run whenever they are used."""
    for name, statement in connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"):
        if not (isinstance(statement, str) and WRITTEN.fullmatch(" ".join(statement.split()))):
            raise sqlite3.DatabaseError(f"malformed index: {str(name)[:80]!r} is nothing that an index makes")


def check_journal(file: Path) -> None:
    """Refuse a journal that no index leaves: SQLite waits for a pipe, and deletes whatever file a journal names."""
    journal = Path(f"{file.resolve()}-journal")
    if not os.path.lexists(journal):
        return
    try:
        with open_regular(journal) as content:
            content.seek(max(0, os.fstat(content.fileno()).st_size - len(MANY)))
            odd = content.read() == MANY
    except OSError:
        odd = True
    if odd:
        raise sqlite3.DatabaseError(f"malformed index: '{journal.name}' beside it is not the journal of an index")


def problems(connection: sqlite3.Connection) -> Iterator[str]:
    """What is wrong, one line each; what others build on comes first."""
    connection.create_function("is_utf8", 1, _is_utf8, deterministic=True)
    connection.create_function("is_vector", 1, _is_vector, deterministic=True)
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table, columns in CELLS.items():
        if table in there:  # some come with what is first kept in them
            missing = LATER - {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            yield from _odd_cells(connection, table, {name: columns[name] for name in columns if name not in missing})
    identity = identity_of(connection)
    own = connection.execute("SELECT position, kind FROM columns").fetchall()
    yield from _odd_cells(connection, "items", {f"c{position}": VALUES.get(kind, "1") for position, kind in own})
    for number, dim in connection.execute("SELECT number, dim FROM generations").fetchall():
        vector = f"{BYTES} AND length({{0}}) = {4 * dim} AND is_vector({{0}})"
        yield from _odd_cells(connection, f"vectors_{number}", {"key": COUNT, "vector": vector})
    vectors = f"vectors_{identity.generation}"
    for count, what in (
        (f"SELECT count(*) FROM items WHERE key NOT IN (SELECT key FROM {vectors})", "no vector"),
        (f"SELECT count(*) FROM {vectors} WHERE key NOT IN (SELECT key FROM items)", "a vector but no entry"),
        (
            """SELECT count(*) FROM items WHERE key > coalesce(
               (SELECT seq FROM sqlite_sequence WHERE name = 'items' AND typeof(seq) = 'integer'), 0)""",
            "a key that was not given yet",
        ),
    ):
        number = connection.execute(count).fetchone()[0]
        if number:
            yield f"{number} item{'s have' if number > 1 else ' has'} {what}"
    if not connection.execute("SELECT count(*) FROM changes").fetchone()[0]:
        yield "the list of changes is empty"
    for (text,) in connection.execute("PRAGMA integrity_check"):
        yield from (line for line in text.splitlines() if line != "ok" and not line.startswith("*** in database"))


def _odd_cells(connection: sqlite3.Connection, table: str, columns: Mapping[str, str]) -> Iterator[str]:
    """The columns that hold something that no index writes into them."""
    for column, sound in columns.items():
        statement = f"SELECT count(*) FROM {table} WHERE NOT coalesce({sound.format(column)}, 0)"
        number = connection.execute(statement).fetchone()[0]
        if number:
            yield f"{number} of the cells '{column}' of the table '{table}' hold what no index writes there"


def _is_utf8(content: bytes | None) -> bool:
    """Whether a text is one; SQLite may ask before it knows that there is any."""
    try:
        return b"\0" not in (content or b"") and str(content or b"", "utf-8") is not None
    except UnicodeDecodeError:
        return False


def _is_vector(content: bytes | None) -> bool:
    """Whether a cell holds numbers that can be compared."""
    try:
        vector = np.frombuffer(content or b"", np.float32)
        return len(checked(vector[None], 1, len(vector))) > 0
    except (TypeError, ValueError):
        return False
