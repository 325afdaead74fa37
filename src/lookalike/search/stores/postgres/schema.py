"""The tables of an index: how they came to be, step by step, and the generations of its vectors.

`STEPS` is the whole history. A new index takes all steps, an older one those it has not taken yet; the number of steps
taken is its format. A step that was released is never changed: a new one is added.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import psycopg

from lookalike.errors import UserError, check
from lookalike.search.items import Identity
from lookalike.search.stores.fields import Names
from lookalike.search.stores.postgres import wire
from lookalike.search.stores.postgres.address import Address
from lookalike.search.stores.postgres.database import CHANGED, Connection, PostgresDatabase, Snapshot, table_of

WIDEST = 16_000  # dimensions of a vector
STEPS: Sequence[Sequence[str]] = (
    (
        "CREATE TABLE facts (name text PRIMARY KEY, value text NOT NULL)",
        """CREATE TABLE generations (number integer PRIMARY KEY, fingerprint text, geometry text NOT NULL,
           dim integer NOT NULL, reach double precision NOT NULL DEFAULT 0, graph text,
           current boolean NOT NULL UNIQUE)""",
        """CREATE TABLE models (fingerprint text, name text, content bytea NOT NULL,
           PRIMARY KEY (fingerprint, name))""",
        """CREATE TABLE columns (position integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE,
           kind text NOT NULL, indexed boolean NOT NULL DEFAULT true)""",
        "CREATE TABLE changes (slot integer PRIMARY KEY, number bigint NOT NULL)",
        'CREATE TABLE pictures (id text COLLATE "C" PRIMARY KEY, content bytea NOT NULL)',
        "CREATE SEQUENCE keys CACHE 100",
    ),
    (
        """CREATE TABLE marks (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, query text NOT NULL,
           query_item text, item text NOT NULL, correct boolean NOT NULL, time double precision NOT NULL,
           UNIQUE (query, item))""",
        "CREATE TABLE asked (query text PRIMARY KEY, content bytea NOT NULL)",
    ),
    (
        """CREATE TABLE log (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, time double precision NOT NULL,
           who text NOT NULL, action text NOT NULL, subject text NOT NULL, detail text NOT NULL)""",
        "CREATE INDEX ON log (action)",
        """CREATE FUNCTION log_is_kept() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN RAISE EXCEPTION 'the log of an index is only added to'; END $$""",
        """CREATE TRIGGER log_is_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON log
           FOR EACH STATEMENT EXECUTE FUNCTION log_is_kept()""",
    ),
    ("ALTER TABLE marks ADD COLUMN author text",),
)
TYPES = {"text": 'text COLLATE "C"', "number": "numeric"}


def create(database: PostgresDatabase, identity: Identity, facts: Mapping[str, str]) -> None:
    """A new index without items, with these facts."""
    check(identity.dim <= WIDEST, f"pgvector holds at most {WIDEST:,} dimensions, this model has {identity.dim:,}")
    database.plain(lambda connection: _create(connection, database.address, identity, facts))


def _create(connection: Connection, address: Address, identity: Identity, facts: Mapping[str, str]) -> None:
    with connection.transaction():
        _add_extension(connection)
        check(
            not there(connection, address.index),
            f"{address.shown}: there is an index already: open it, or give another name with ?index=NAME",
        )
        connection.execute(
            psycopg.sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(psycopg.sql.Identifier(address.index))
        )
        _take_steps(connection, 0)
        connection.cursor().executemany("INSERT INTO facts VALUES (%s, %s)", list(facts.items()))
        begin(Snapshot(connection, identity, 0.0, None, None, {}, ""), identity, current=True)
        connection.execute(CHANGED)


def _add_extension(connection: Connection) -> None:
    if not wire.register(connection):
        connection.execute("CREATE EXTENSION vector SCHEMA public")
        connection.execute("SELECT set_config('search_path', current_setting('search_path') || ', public', false)")
        check(wire.register(connection), "the extension 'vector' is not where it should be: drop it and try again")


def there(connection: Connection, index: str) -> bool:
    """Whether an index has that name."""
    statement = "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'generations'"
    return connection.execute(statement, (index,)).fetchone() is not None


def opened(database: PostgresDatabase) -> None:
    """Look whether there is an index, and bring its tables up to date."""
    shown, index = database.address.shown, database.address.index
    if not database.plain(lambda connection: there(connection, index)):
        raise UserError(f"there is no index at {shown}: make one with lookalike index MODEL DATA --out '{shown}'")
    check(
        database.plain(lambda connection: _allowed(connection, index)),
        f'{shown}: this user may not see the index: its owner runs GRANT USAGE ON SCHEMA "{index}", and GRANT SELECT '
        f'ON ALL TABLES IN SCHEMA "{index}"',
    )
    version = database.plain(_format)
    check(version <= len(STEPS), f"{shown} has format {version}, this version reads {len(STEPS)}: update lookalike")
    if version < len(STEPS):
        database.plain(_migrate)


def _allowed(connection: Connection, index: str) -> bool:
    """Whether this user may use the schema: without the right its tables seem not to be there."""
    row = connection.execute("SELECT has_schema_privilege(%s, 'USAGE')", (index,)).fetchone()
    return row is not None and bool(row[0])


def _format(connection: Connection) -> int:
    row = connection.execute("SELECT value FROM facts WHERE name = 'format'").fetchone()
    return int(row[0]) if row else 0


def _migrate(connection: Connection) -> None:
    with connection.transaction():
        connection.execute("LOCK TABLE facts IN EXCLUSIVE MODE")  # of two clients that open it, one does it
        _take_steps(connection, _format(connection))


def _take_steps(connection: Connection, done: int) -> None:
    for step in STEPS[done:]:
        for statement in step:
            connection.execute(statement)
    connection.execute(
        "INSERT INTO facts VALUES ('format', %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (str(len(STEPS)),),
    )


def begin(snapshot: Snapshot, identity: Identity, current: bool) -> None:
    """A generation without items: rows hold an item and its vector, so that a filter and a distance are one look."""
    table, connection = table_of(identity.generation), snapshot.connection
    connection.execute(
        "INSERT INTO generations (number, fingerprint, geometry, dim, current) VALUES (%s, %s, %s, %s, %s)",
        (identity.generation, identity.fingerprint, identity.geometry, identity.dim, current),
    )
    # rows stay whole up to a page: a scan that fetches every vector from elsewhere is many times slower; the vector
    # stands before all that has no fixed length, so that a scan finds it without a look at the rest
    connection.execute(f"""CREATE TABLE {table} (
        key bigint NOT NULL DEFAULT nextval('keys') PRIMARY KEY, added double precision NOT NULL,
        vector vector({identity.dim}) NOT NULL, id text COLLATE "C" NOT NULL UNIQUE, path text COLLATE "C",
        label text COLLATE "C", root text COLLATE "C", size bigint, modified bigint, digest text)
        WITH (toast_tuple_target = 8160)""")
    connection.execute(f"CREATE INDEX ON {table} USING hash (path)")  # of any length
    for column in ("label", "added"):
        connection.execute(f"CREATE INDEX ON {table} ({column})")
    connection.execute("LOCK TABLE columns IN SHARE MODE")  # a writer may be about to add one
    for position, kind, indexed in connection.execute("SELECT position, kind, indexed FROM columns").fetchall():
        add_column(connection, table, f"c{position}", kind, indexed)


def add_column(connection: Connection, table: str, physical: str, kind: str, indexed: bool = True) -> None:
    connection.execute(f"ALTER TABLE {table} ADD COLUMN {physical} {TYPES[kind]}")
    if indexed:
        connection.execute(f"CREATE INDEX {table}_{physical} ON {table} ({physical})")


def begin_next(snapshot: Snapshot, identity: Identity) -> Identity:
    """Room for another model's vectors; an unfinished one is dropped."""
    check(identity.dim <= WIDEST, f"pgvector holds at most {WIDEST:,} dimensions, this model has {identity.dim:,}")
    if snapshot.upcoming is not None:
        drop(snapshot, snapshot.upcoming.generation)
    new = replace(identity, generation=snapshot.identity.generation + 1)
    begin(snapshot, new, current=False)
    return new


def drop(snapshot: Snapshot, generation: int) -> None:
    snapshot.connection.execute("DELETE FROM generations WHERE number = %s", (generation,))
    snapshot.connection.execute(f"DROP TABLE {table_of(generation)}")


def switch(snapshot: Snapshot, generation: int) -> int:
    """Let the new generation answer if it is complete; how many items have no vector in it."""
    connection, old = snapshot.connection, snapshot.identity.generation
    if old >= generation:  # done: another client was faster, or the answer was lost on the way
        return 0
    connection.execute(f"LOCK TABLE {snapshot.table} IN SHARE MODE")  # nobody writes until it is decided
    missing = unfilled_count(snapshot, generation)
    if not missing:
        connection.execute(f"""DELETE FROM {table_of(generation)} AS new
                               WHERE NOT EXISTS (SELECT FROM {snapshot.table} AS old WHERE old.key = new.key)""")
        drop(snapshot, old)
        connection.execute("UPDATE generations SET current = true WHERE number = %s", (generation,))
    return missing


def unfilled_count(snapshot: Snapshot, generation: int) -> int:
    statement = f"""SELECT count(*) FROM {snapshot.table} AS old
                    WHERE NOT EXISTS (SELECT FROM {table_of(generation)} AS new WHERE new.key = old.key)"""
    row = snapshot.connection.execute(statement).fetchone()
    assert row is not None
    return int(row[0])


def tables_now(connection: Connection) -> list[str]:
    """Those of all generations as of this statement."""
    return [table_of(number) for (number,) in connection.execute("SELECT number FROM generations").fetchall()]


def names_now(connection: Connection) -> Names:
    """The user's columns as of this statement."""
    rows = connection.execute("SELECT name, position, kind FROM columns ORDER BY position").fetchall()
    return {name: (f"c{position}", kind) for name, position, kind in rows}
