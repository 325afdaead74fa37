"""One database for many threads: connections that are used again, snapshots, whole changes, and patience.

A piece of work is a function of a `Snapshot`. It runs in one transaction; where the connection is lost, the tables were
changed in between or two changes collide, it runs again from its start. So every piece of work may run twice and must
come to the same end. Whoever has several hosts in the address reads from a replica, once that has caught up with what
this process knows of.

A search of one statement needs no transaction: it is written from what was last known of the index, and says itself
whether that still holds (`STATE`). So it is one message to the server and one back.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar, cast

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from lookalike.errors import UserError
from lookalike.geometry import Geometry
from lookalike.search.items import Identity
from lookalike.search.stores.fields import OWN, Names
from lookalike.search.stores.postgres import wire
from lookalike.search.stores.postgres.address import Address
from lookalike.search.stores.postgres.failures import FailureKind, explained, kind_of

KEPT = 8  # connections that wait for the next piece of work
PATIENCE = 30.0  # seconds for a server that was there and is gone
PAUSES = (0.02, 0.5)  # seconds between two tries, at first and at last
REPEATS = {FailureKind.STALE: 5, FailureKind.CONFLICT: 40}  # of work whose tables were changed, or that collided
TIMEOUT = 300_000  # milliseconds of a statement, where neither the address nor the server sets another time
SLOTS = 64  # counters of changes, so that writers rarely wait for each other's
DEFAULTS = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "application_name": "lookalike",
}
SESSION = """SELECT set_config('search_path', quote_ident(%s) || coalesce((SELECT ', ' || quote_ident(nspname)
                    FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'),
                    ', public'), false),
                    set_config('jit', 'off', false),
                    set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
                               ELSE current_setting('synchronous_commit') END, false),
                    set_config('statement_timeout', CASE current_setting('statement_timeout') WHEN '0' THEN %s
                               ELSE current_setting('statement_timeout') END, false)"""
CHANGED = f"""INSERT INTO changes VALUES (pg_backend_pid() % {SLOTS}, 1)
              ON CONFLICT (slot) DO UPDATE SET number = changes.number + 1"""
# every change of a row is a new version of it, and has the number of its transaction
STATE = "concat((SELECT array_agg(xmin) FROM generations), (SELECT array_agg(xmin) FROM columns))"
REPEATED = 2  # a search that comes so often is prepared: its plan is kept
Connection = psycopg.Connection[tuple[Any, ...]]
logging.getLogger("psycopg").setLevel(logging.ERROR)  # else it tells of every connection that is lost and replaced
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Snapshot:
    """One transaction, and what it must know of the index."""

    connection: Connection
    identity: Identity
    reach: float  # no vector is longer
    graph: str | None  # what is known of the approximate index, where there is one
    upcoming: Identity | None
    names: Names
    state: str  # which versions of the rows say so

    @property
    def table(self) -> str:
        """Items and vectors of the generation that answers."""
        return table_of(self.identity.generation)

    @property
    def tables(self) -> list[str]:
        """Those of all generations."""
        return [self.table, *([] if self.upcoming is None else [table_of(self.upcoming.generation)])]


def table_of(generation: int) -> str:
    return f"items_{generation}"


class PostgresDatabase:
    """Connections to one server."""

    def __init__(self, address: Address, patience: float = PATIENCE) -> None:
        self.address, self.patience = address, patience
        try:
            self._settings = DEFAULTS | conninfo_to_dict(address.url)
        except psycopg.Error as error:
            self._raise(error)
        self.replicated = "," in str(self._settings.get("host", ""))
        self._idle: dict[bool, list[Connection]] = {True: [], False: []}
        self._process, self._inherited = os.getpid(), self._idle
        self._lock = threading.Lock()
        self._met = False  # whether the server was there when it was last asked
        self._known: Snapshot | None = None  # what the last transaction saw
        self._behind: str | None = None  # the place in the primary's log that a replica must have reached

    def read(
        self,
        work: Callable[Concatenate[Snapshot, Parameters], Result],
        *args: Parameters.args,
        **settings: Parameters.kwargs,
    ) -> Result:
        """Work on one snapshot, whatever is written meanwhile."""
        return self._repeated(self._from_replica(), lambda connection: self._reading(connection, work, args, settings))

    def glance(
        self,
        work: Callable[Concatenate[Snapshot, Parameters], Result],
        *args: Parameters.args,
        **settings: Parameters.kwargs,
    ) -> Result | None:
        """Work outside of any transaction on what was last known of the index; None: look again with `read`."""
        known = self._known
        if known is None:
            return None
        try:
            with self._connection(self._from_replica()) as connection:
                return work(replace(known, connection=connection), *args, **settings)
        except (UserError, UnicodeEncodeError):  # a column that is new, maybe; `read` says what is wrong
            return None
        except psycopg.Error as error:
            if kind_of(error) is FailureKind.FINAL:
                self._raise(error)
            self.close()  # with the plans they keep
            return None

    def write(
        self,
        work: Callable[Concatenate[Snapshot, Parameters], Result],
        *args: Parameters.args,
        **settings: Parameters.kwargs,
    ) -> Result:
        """One change: whole and durable when this has returned, not there if it failed."""
        result = self._repeated(False, lambda connection: _writing(connection, work, args, settings))
        self.note_changes()
        return result

    def plain(self, work: Callable[[Connection], Result]) -> Result:
        """Work outside of any transaction, on the primary."""
        return self._repeated(False, work)

    def note_changes(self) -> None:
        """From now on only a replica that has everything the primary has now is asked."""
        if self.replicated:
            with suppress(psycopg.Error), self._connection(False) as primary:
                (self._behind,) = primary.execute("SELECT pg_current_wal_lsn()::text").fetchone() or (None,)

    def _from_replica(self) -> bool:
        if not self.replicated:
            return False
        behind = self._behind
        if behind is None:
            return True
        statement = "SELECT NOT pg_is_in_recovery() OR pg_last_wal_replay_lsn() >= %s::pg_lsn"
        with suppress(psycopg.Error), self._connection(True) as replica:
            (reached,) = replica.execute(statement, (behind,)).fetchone() or (False,)
            if reached:
                self._behind = None
                return True
        return False

    def _reading(self, connection: Connection, work: Callable[..., Result], args: Any, settings: Any) -> Result:
        snapshot = snapshot_in(connection, "ISOLATION LEVEL REPEATABLE READ READ ONLY")
        result = work(snapshot, *args, **settings)
        connection.execute("COMMIT")
        self._known = snapshot
        return result

    def _repeated(self, replica: bool, work: Callable[[Connection], Result]) -> Result:
        deadline, pause, repeats = time.monotonic() + self.patience, PAUSES[0], 0
        while True:
            try:
                with self._connection(replica) as connection:
                    return work(connection)
            except UnicodeEncodeError as error:
                raise UserError(f"{error.object!r} is not text: no index holds such a name or value") from None
            except psycopg.Error as error:
                problem, repeats = kind_of(error), repeats + 1
                again = repeats < REPEATS.get(problem, 0)
                if problem in (FailureKind.LOST, FailureKind.STALE):
                    self.close()  # the other connections are gone, too, or their plans are of no use any more
                if problem is FailureKind.LOST:
                    again = self._met = self._met and time.monotonic() < deadline
                if not again:
                    self._raise(error)
            time.sleep(pause)
            pause = min(2 * pause, PAUSES[1])

    @contextmanager
    def _connection(self, replica: bool) -> Iterator[Connection]:
        """A connection of this thread's own, that waits for the next one when it is sound."""
        with self._lock:
            if self._process != os.getpid():  # after a fork they are still the other's, who must not be hung up on
                self._process, self._inherited, self._idle = os.getpid(), self._idle, {True: [], False: []}
            connection = self._idle[replica].pop() if self._idle[replica] else None
        connection = connection or self._connect(replica)
        try:
            yield connection
        except BaseException:
            with suppress(psycopg.Error):
                connection.rollback()
            raise
        finally:
            # a replica may be asked before it has heard of the extension: the next connection will find it
            sound = connection.info.transaction_status is TransactionStatus.IDLE and wire.registered(connection)
            with self._lock:
                kept = sound and len(self._idle[replica]) < KEPT
                if kept:
                    self._idle[replica].append(connection)
            if not kept:
                connection.close()

    def _connect(self, replica: bool) -> Connection:
        session = {"target_session_attrs": "prefer-standby" if replica else "read-write"} if self.replicated else {}
        connection = psycopg.connect(**cast(Any, self._settings | session), autocommit=True, prepare_threshold=None)
        try:
            connection.execute(SESSION, (self.address.index, str(TIMEOUT)))
            wire.register(connection)
        except BaseException:
            connection.close()
            raise
        self._met = True
        return connection

    def _raise(self, error: psycopg.Error) -> NoReturn:
        meaning = explained(self.address, error)
        raise meaning from (None if meaning is error else error)

    def __del__(self) -> None:
        with suppress(Exception):  # the process may be ending, with half of the library gone
            self.close()

    def close(self) -> None:
        with self._lock:
            for connections in self._idle.values() if self._process == os.getpid() else ():
                while connections:
                    connections.pop().close()


@contextmanager
def plans_kept(connection: Connection) -> Iterator[None]:
    """Statements that come again keep their plans. Not for those whose best plan depends on their parameters."""
    connection.prepare_threshold = REPEATED
    try:
        yield
    finally:
        connection.prepare_threshold = None


def snapshot_in(connection: Connection, how: str) -> Snapshot:
    """A transaction, with what the tables say of the index; one answer of the server for all of it."""
    with connection.pipeline():
        connection.execute(f"BEGIN {how}")
        generations = connection.execute(
            f"SELECT number, fingerprint, geometry, dim, reach, graph, current, {STATE} FROM generations"
        )
        columns = connection.execute("SELECT name, position, kind FROM columns ORDER BY position")
    identities = {
        current: (Identity(fingerprint, cast(Geometry, geometry), dim, number), reach, graph, state)
        for number, fingerprint, geometry, dim, reach, graph, current, state in generations.fetchall()
    }
    identity, reach, graph, state = identities[True]
    upcoming = identities[False][0] if False in identities else None
    names = OWN | {name: (f"c{position}", kind) for name, position, kind in columns.fetchall()}
    return Snapshot(connection, identity, reach, graph, upcoming, names, state)


def _writing(connection: Connection, work: Callable[..., Result], args: Any, settings: Any) -> Result:
    result = work(snapshot_in(connection, ""), *args, **settings)
    connection.execute(CHANGED)
    connection.execute("COMMIT")
    return result
