"""Keys to an index: who may ask it what over the network, until when.

A key is 32 random bytes, which nobody guesses, so its SHA-256 is all that is kept. Keys are entries of the log of the
index: given and taken back there, they have their history, and two who change them at once do not undo each other.
"""

import hashlib
import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from lookalike.errors import UserError, check
from lookalike.search.log import LogEntry
from lookalike.search.stores import ActionLog

Scope = Literal["search", "mark", "write", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
ADDED, REVOKED = "key added", "key revoked"
START = "lookalike_"  # by which people and scanners recognise one that was left somewhere
DAY = 86_400.0


@dataclass(frozen=True)
class Key:
    """A key by its digest: what it may do, until when."""

    name: str
    digest: str
    scopes: Sequence[Scope]
    added: float
    expires: float | None = None
    revoked: float | None = None

    def valid(self, now: float) -> bool:
        return self.revoked is None and (self.expires is None or now < self.expires)

    def as_json(self, now: float) -> dict[str, Any]:
        """What may be shown."""
        return {
            "name": self.name,
            "scopes": list(self.scopes),
            "added": self.added,
            "expires": self.expires,
            "revoked": self.revoked,
            "valid": self.valid(now),
        }


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()


def every(log: ActionLog) -> list[Key]:
    """All keys that were ever given, the oldest first."""
    keys: list[Key] = []
    for entry in log.entries(actions=(ADDED, REVOKED)):
        if entry.action == ADDED:
            keys.append(_key(entry))
        else:  # two may have had the name
            keys = [
                replace(key, revoked=entry.time) if key.name == entry.subject and key.revoked is None else key
                for key in keys
            ]
    return keys


def _key(entry: LogEntry) -> Key:
    try:
        content = json.loads(entry.detail)
        scopes = tuple(scope for scope in SCOPES if scope in content["scopes"])
        expires = None if content["expires"] is None else float(content["expires"])
        return Key(entry.subject, str(content["digest"]), scopes, entry.time, expires)
    except (KeyError, RecursionError, TypeError, ValueError):
        raise UserError(
            f"entry {entry.number} of this index's log is not a valid key: it is damaged, or was tampered with"
        ) from None


def add(log: ActionLog, name: str, scopes: Sequence[str], days: float | None, who: str) -> str:
    """A new key; it is returned once and kept nowhere."""
    check(name.isprintable() and name == name.strip() != "", "a key needs a printable name without spaces around it")
    wrong = next((scope for scope in scopes if scope not in SCOPES), None)
    check(wrong is None, f"there is no scope {wrong!r}: choose from {', '.join(SCOPES)}")
    check(bool(scopes), f"say what the key may do: --scope, one or more of {', '.join(SCOPES)}")
    check(days is None or days > 0, f"--days must be positive, not {days or 0:g}")
    now = time.time()
    taken = any(key.name == name and key.valid(now) for key in every(log))
    check(not taken, f"there is a key {name!r} already: revoke it first, or give another name")
    secret = START + secrets.token_urlsafe(32)
    expires = None if days is None else now + days * DAY
    content = {"digest": digest_of(secret), "scopes": list(scopes), "expires": expires}
    log.append(LogEntry(who, ADDED, name, json.dumps(content)))
    return secret


def revoke(log: ActionLog, name: str, who: str) -> None:
    """Take a key back: it opens nothing any more, a second later at a server that runs."""
    known = [key.name for key in every(log) if key.revoked is None]
    check(name in known, f"there is no key {name!r} to revoke; there are: {', '.join(sorted(set(known))) or 'none'}")
    log.append(LogEntry(who, REVOKED, name))
