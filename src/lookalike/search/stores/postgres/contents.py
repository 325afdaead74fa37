"""What an index keeps beside its items: pictures, small documents, the files of models, and whether all is sound."""

from collections.abc import Mapping, Sequence

from lookalike.search.stores.postgres.database import Snapshot
from lookalike.search.stores.postgres.rows import items, one


def picture(snapshot: Snapshot, id_: str) -> bytes | None:
    items(snapshot, [id_])
    content = one(snapshot, "SELECT content FROM pictures WHERE id = %s", (id_,))
    return None if content is None else bytes(content)


def pictures(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, bytes]:
    statement = "SELECT id, content FROM pictures WHERE id = ANY(%s)"
    return {id_: bytes(content) for id_, content in snapshot.connection.execute(statement, (list(ids),), binary=True)}


def write_fact(snapshot: Snapshot, name: str, text: str | None) -> None:
    snapshot.connection.execute("DELETE FROM facts WHERE name = %s", (name,))
    if text is not None:
        snapshot.connection.execute("INSERT INTO facts VALUES (%s, %s)", (name, text))


def model_files(snapshot: Snapshot, fingerprint: str) -> dict[str, bytes]:
    statement = "SELECT name, content FROM models WHERE fingerprint = %s"
    return {
        name: bytes(content) for name, content in snapshot.connection.execute(statement, (fingerprint,), binary=True)
    }


def keep_model(snapshot: Snapshot, fingerprint: str, files: Mapping[str, bytes]) -> None:
    statement = """INSERT INTO models VALUES (%s, %s, %s)
                   ON CONFLICT (fingerprint, name) DO UPDATE SET content = excluded.content"""
    snapshot.connection.cursor().executemany(statement, [(fingerprint, *file) for file in files.items()])


def troubles(snapshot: Snapshot) -> list[str]:
    """What is wrong with what is kept; every row is read."""
    lines = []
    for what, statement in (
        ("a vector of another width", f"SELECT count(*) FROM {snapshot.table} WHERE vector_dims(vector) <> %s"),
        ("a longer vector than is known", f"""SELECT count(*) FROM {snapshot.table}, (SELECT %s * 0 + reach AS reach
             FROM generations WHERE current) AS known WHERE vector_norm(vector) > 1.001 * known.reach + 1e-30"""),
        ("a picture but no entry", f"""SELECT count(*) FROM pictures WHERE %s > 0 AND NOT EXISTS
             (SELECT FROM {snapshot.table} AS items WHERE items.id = pictures.id)"""),
    ):  # fmt: skip
        count = int(one(snapshot, statement, (snapshot.identity.dim,)))
        lines += [f"{count} item{'s have' if count > 1 else ' has'} {what}"] if count else []
    unsound = """SELECT relname FROM pg_index JOIN pg_class ON oid = indexrelid
                 WHERE indrelid = %s::regclass AND NOT indisvalid"""
    return lines + [f"the index {name} is not complete: lookalike status --approximate builds it again"
                    for (name,) in snapshot.connection.execute(unsound, (snapshot.table,))]  # fmt: skip
