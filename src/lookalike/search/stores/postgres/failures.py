"""What goes wrong with a server: what passes by itself, and what one line must say."""

import re
from enum import Enum

import psycopg
from psycopg import errors

from lookalike.errors import UserError
from lookalike.search.stores import StorageError
from lookalike.search.stores.postgres.address import Address


class FailureKind(Enum):
    LOST = "the connection is gone, or the server is just starting: it will be back"
    STALE = "the tables were changed in between: look again"
    CONFLICT = "two changes at once: one of them is repeated"
    FINAL = "nothing that trying again would help"


LOST = ("57P01", "57P02", "57P03", "57P05")
STALE = ("42P01", "42703", "26000")
CONFLICT = ("40001", "40P01", "23505")
REFUSED = (  # what a server says before there is a connection, and what it means
    ("password authentication failed", "the server refuses the password: check it in the address, or set PGPASSWORD"),
    ("no password supplied", "the server asks for a password: put it into the address, or set PGPASSWORD"),
    ("role .* does not exist", "the server does not know this user: check the address"),
    ("database .* does not exist", "there is no such database: make it with createdb"),
    ("pg_hba.conf", "the server does not let this user in from here: its pg_hba.conf says who may"),
    ("permission denied for database", "this user may not connect to the database: GRANT CONNECT lets it"),
    (
        "invalid (connection option|URI|percent-encoded|port|integer|\\w+ value)|unexpected spaces",
        "the address cannot be read: write postgresql://user@host/database, with options of libpq after a ?",
    ),
)
MEANINGS = (  # of the codes of errors, the first that fits
    (
        "42501",
        "this user does not have the rights for that: to make an index takes GRANT CREATE ON DATABASE, to search "
        "and to change one the rights on its schema",
    ),
    ("25006", "this server is a replica and only reads: add its primary to the address, as in //primary,replica/"),
    ("53100", "the disk of the server is full: free some space and repeat the command, nothing is lost"),
    ("53200", "the server is out of memory: repeat the command when it is less busy"),
    ("53300", "the server has no free connection: raise its max_connections, or stop other clients"),
    ("57014", "the answer took longer than the time-out of statements: raise statement_timeout for this user"),
    ("55P03", "another process holds the index locked: try again when that is done"),
    ("42P01", "the index no longer exists: it was removed meanwhile"),
    ("3F000", "the index no longer exists: it was removed meanwhile"),
    ("XX001", "the files of the server are damaged: restore them from a backup"),
    ("XX002", "an index of the server is damaged: REINDEX it"),
)
VALUE = ("22", "54")  # codes of values that are wrong, or too large


def kind_of(error: psycopg.Error) -> FailureKind:
    code = error.sqlstate
    if code in STALE or (code == "0A000" and "cached plan" in str(error)):
        return FailureKind.STALE
    if code in CONFLICT:
        return FailureKind.CONFLICT
    if isinstance(error, errors.InterfaceError) or code in LOST or (code or "").startswith("08"):
        return FailureKind.LOST
    unconnected = isinstance(error, errors.OperationalError) and code is None
    return FailureKind.LOST if unconnected and _refusal(str(error)) is None else FailureKind.FINAL


def explained(address: Address, error: psycopg.Error) -> Exception:
    """What a server complains about, as one line that says what to do; a mistake of ours stays what it is."""
    text, code = (str(error).strip() or type(error).__name__).splitlines()[0], error.sqlstate or ""
    if code.startswith(VALUE) or isinstance(error, errors.DataError):  # psycopg itself refuses some
        return UserError(f"PostgreSQL cannot hold such a value ({text})")
    return StorageError(f"{address.shown}: {meaning}") if (meaning := _meaning(error, text, code)) else error


def _meaning(error: psycopg.Error, text: str, code: str) -> str | None:
    refusal = _refusal(str(error)) if not code else None
    if refusal is not None:
        return refusal
    if code == "42501" and "extension" in text:
        return f"this user may not add the extension: let an administrator run CREATE EXTENSION vector there ({text})"
    if "vector" in text and code in ("0A000", "58P01", "42704"):
        return f"the server has no extension 'vector': install pgvector there ({text})"
    if kind_of(error) is FailureKind.LOST:
        return f"the server does not answer: is it running? ({text})"
    return next((f"{meaning} ({text})" for start, meaning in MEANINGS if code.startswith(start)), None)


def _refusal(text: str) -> str | None:
    return next((meaning for sign, meaning in REFUSED if re.search(sign, text)), None)
