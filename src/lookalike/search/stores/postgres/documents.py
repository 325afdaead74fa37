"""What an index keeps beside its items: pictures, small documents, the files of models."""

from collections.abc import Mapping, Sequence

from lookalike.search.stores.postgres.database import PostgresDatabase, Snapshot
from lookalike.search.stores.postgres.rows import one


class PostgresDocuments:
    """See `Documents`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self.database = database

    def read(self, name: str) -> str | None:
        return self.database.read(one, "SELECT value FROM facts WHERE name = %s", (name,))  # type: ignore[no-any-return]

    def write(self, name: str, text: str | None) -> None:
        self.database.write(_write, name, text)

    def model(self, fingerprint: str) -> dict[str, bytes]:
        return self.database.read(_contents, "SELECT name, content FROM models WHERE fingerprint = %s", fingerprint)

    def keep_model(self, fingerprint: str, files: Mapping[str, bytes]) -> None:
        self.database.write(_keep_model, fingerprint, files)

    def pictures(self, ids: Sequence[str]) -> dict[str, bytes]:
        return self.database.read(_contents, "SELECT id, content FROM pictures WHERE id = ANY(%s)", list(ids))


def _contents(snapshot: Snapshot, statement: str, key: str | list[str]) -> dict[str, bytes]:
    """Names and contents."""
    return {name: bytes(content) for name, content in snapshot.connection.execute(statement, (key,), binary=True)}


def _write(snapshot: Snapshot, name: str, text: str | None) -> None:
    snapshot.connection.execute("DELETE FROM facts WHERE name = %s", (name,))
    if text is not None:
        snapshot.connection.execute("INSERT INTO facts VALUES (%s, %s)", (name, text))


def _keep_model(snapshot: Snapshot, fingerprint: str, files: Mapping[str, bytes]) -> None:
    statement = """INSERT INTO models VALUES (%s, %s, %s)
                   ON CONFLICT (fingerprint, name) DO UPDATE SET content = excluded.content"""
    snapshot.connection.cursor().executemany(statement, [(fingerprint, *file) for file in files.items()])
