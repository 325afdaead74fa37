"""The tables of an index in SQLite, in a file that is whole or not there."""

import os
import time
from pathlib import Path

from lookalike import files
from lookalike.errors import UserError
from lookalike.search.items import Identity
from lookalike.search.stores.sqlite import generations
from lookalike.search.stores.sqlite.database import SETTINGS, connect, explained

FORMAT = "1"
SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE generations (number INTEGER PRIMARY KEY, fingerprint TEXT, geometry TEXT NOT NULL, dim INTEGER NOT NULL,
                          current INTEGER NOT NULL);
CREATE TABLE models (fingerprint TEXT, name TEXT, content BLOB NOT NULL, PRIMARY KEY (fingerprint, name));
CREATE TABLE columns (position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL);
CREATE TABLE items (key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, path, label TEXT, root TEXT,
                    size INTEGER, modified INTEGER, digest TEXT, added REAL NOT NULL);
CREATE INDEX items_path ON items (path);
CREATE INDEX items_label ON items (label);
CREATE TABLE changes (number INTEGER PRIMARY KEY AUTOINCREMENT, token TEXT NOT NULL, time REAL NOT NULL);
CREATE TABLE removals (key INTEGER PRIMARY KEY, change INTEGER NOT NULL);
CREATE INDEX removals_change ON removals (change);
CREATE TABLE pictures (key INTEGER PRIMARY KEY, content BLOB NOT NULL);
"""


def create(file: Path, identity: Identity) -> None:
    """The file of a new, empty index; of several that make it at once, one does."""
    partial = files.beside(file)
    with explained(partial):
        connection = connect(partial, "mode=rwc", SETTINGS)
        connection.executescript(f"BEGIN; {SCHEMA}")
        connection.execute("INSERT INTO facts VALUES ('format', ?)", (FORMAT,))
        generations.begin(connection, identity, current=True)
        connection.execute("INSERT INTO changes (token, time) VALUES (?, ?)", (os.urandom(8).hex(), time.time()))
        connection.execute("COMMIT")
        connection.close()  # the log is in the file then
    try:
        files.link(partial, file)
    except FileExistsError:
        raise UserError(f"there is an index in '{file.parent}' already: open it, or give a new folder") from None
    finally:
        partial.unlink(missing_ok=True)
    files.sync_folder(file.parent)
