"""Whether what an index on PostgreSQL keeps is sound."""

from lookalike.search.stores.postgres.database import Snapshot
from lookalike.search.stores.postgres.rows import one


def problems(snapshot: Snapshot) -> list[str]:
    """What is wrong with what is kept; every row is read."""
    lines = []
    for what, statement in (
        ("a vector of another width", f"SELECT count(*) FROM {snapshot.table} WHERE vector_dims(vector) <> %s"),
        (
            "a longer vector than is known",
            f"""SELECT count(*) FROM {snapshot.table}, (SELECT %s * 0 + reach AS reach
             FROM generations WHERE current) AS known WHERE vector_norm(vector) > 1.001 * known.reach + 1e-30""",
        ),
        (
            "a picture but no entry",
            f"""SELECT count(*) FROM pictures WHERE %s > 0 AND NOT EXISTS
             (SELECT FROM {snapshot.table} AS items WHERE items.id = pictures.id)""",
        ),
    ):
        count = int(one(snapshot, statement, (snapshot.identity.dim,)))
        lines += [f"{count} item{'s have' if count > 1 else ' has'} {what}"] if count else []
    unsound = """SELECT relname FROM pg_index JOIN pg_class ON oid = indexrelid
                 WHERE indrelid = %s::regclass AND NOT indisvalid"""
    return lines + [
        f"the index {name} is not complete: lookalike status --approximate builds it again"
        for (name,) in snapshot.connection.execute(unsound, (snapshot.table,))
    ]
