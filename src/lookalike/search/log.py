"""Who did what to an index: entries that are added and never changed.

An item is named by a digest of its id: whoever has the id finds its entries, and one that is forgotten leaves no name.
"""

import getpass
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

SIZE = 8  # bytes of the digest of an id
FEW = 100  # items of one removal that have an entry each
LATEST = 253402300799.0  # seconds since 1970 that a date can be made of
DIGEST = re.compile(r'"digest": "[0-9a-f]*", ')


@dataclass(frozen=True)
class LogEntry:
    """One act: who, what, on what; the store knows when, and counts them."""

    who: str
    action: str
    subject: str = ""
    detail: str = ""
    time: float = 0.0
    number: int = 0


def subject_of(id_: str) -> str:
    """What the log calls an item.

    >>> subject_of("shop/vase.jpg")
    'item 7cc91ac8bf54ab8f'
    """
    return f"item {blake2b(id_.encode(errors='surrogatepass'), digest_size=SIZE).hexdigest()}"


def removed(ids: Sequence[str], count: int, word: str = "removed") -> list[LogEntry]:
    """The user of this process has removed items: an entry for each of a few, for many their `count`."""
    who = this_user()
    if len(ids) > FEW:
        return [LogEntry(who, f"items {word}", detail=json.dumps({"items": count}))]
    return [LogEntry(who, f"item {word}", subject_of(id_)) for id_ in ids]


def shown(entry: LogEntry) -> dict[str, Any]:
    """An entry for people and programs; the digest of a key stays inside."""
    content = {"number": entry.number, "time": _when(entry.time), "who": entry.who, "action": entry.action}
    return content | {"subject": entry.subject, "detail": DIGEST.sub("", entry.detail)}


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(min(max(seconds, 0.0), LATEST), UTC).isoformat(timespec="seconds")


def this_user() -> str:
    """The user that runs this process."""
    try:
        return f"user {getpass.getuser()}"
    except (KeyError, OSError):  # a container without names
        return "user unknown"
