"""Items that an index in SQLite must forget: no file in its folder holds a byte of them afterwards.

A row that was deleted stays in free pages, in the log and in the segments until something else is written there. So the
database is written anew, its log is emptied, the segments are built again, and what a restoring set aside is deleted.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from lookalike import files
from lookalike.errors import UserError
from lookalike.search.stores import Forgotten
from lookalike.search.stores.sqlite import marks, rows, upkeep
from lookalike.search.stores.sqlite.cache import Cache
from lookalike.search.stores.sqlite.database import SqliteDatabase, explained

PAUSE = 0.05  # seconds between two looks whether others have stopped reading
BEYOND = (
    "copies and backups of the index elsewhere, also in the history of the file system and on the medium itself",
    "what processes that have the index open hold in memory, until their next search or their end",
)


def forget(database: SqliteDatabase, cache: Cache, ids: Sequence[str]) -> Forgotten:
    """Remove items, with every mark of them, and write anew every file that held them."""
    with database.writing() as connection:
        keys = rows.keys_of(connection, ids, complete=False)
        marked = marks.forget(connection, ids)
        rows.remove(connection, list(keys.values()))
    upkeep.compact(database)
    _empty_log(database)
    cache.clear()
    gone = _set_aside(database.file)
    return Forgotten(len(keys), marked, [database.file.name, f"{database.file.name}-wal", "cache", *gone], BEYOND)


def _empty_log(database: SqliteDatabase) -> None:
    """Move the log into the file and cut it off; a reader of an old snapshot blocks this."""
    until = time.monotonic() + database.patience
    with explained(database.file):
        while database.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            if time.monotonic() > until:
                raise UserError(
                    f"the items are removed, but '{database.file}-wal' still holds them while another process reads "
                    "the index: stop it and repeat the command"
                )
            time.sleep(PAUSE)


def _set_aside(file: Path) -> list[str]:
    """Delete what `restore` and killed writers have left; the names of those files."""
    with files.lock_folder(file.parent):
        beside = [path for path in file.parent.glob(f"{file.name}.before*") if path.is_file()]
        for path in beside:
            path.unlink(missing_ok=True)
        files.remove_leftovers(file.parent)
        files.sync_folder(file.parent)
    return sorted(path.name for path in beside)
