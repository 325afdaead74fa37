"""Who works on what, in a folder that several machines see: claims that end with their owners.

A claim is a small file that only one worker can create. Its owner renews it as its work proceeds. A claim that has not
changed for a while by the watch of whoever looks on has lost its owner, and so has one whose process is gone from this
machine: then the next worker takes it. Clocks of two machines are never compared, and no locks are needed, which
network filesystems often lack (`files.lock` is for one machine). A worker that was only taken for dead, because it was
suspended say, may go on beside the one that took its claim: so the work must be such that doing it twice does no harm.
"""

import json
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from lookalike.errors import UserError
from lookalike.files import read_regular, write_once, write_text

LEASE = 300.0  # seconds: a worker without a sign of life for so long counts as dead
RENEWALS = 10  # within a lease
LARGEST = 1 << 20  # bytes of a claim


class Claims:
    """The claims in a folder, as one worker makes, renews and sees them.

    >>> from tempfile import mkdtemp
    >>> place = Path(mkdtemp())
    >>> one, other = Claims(place), Claims(place)
    >>> one.take("7"), other.take("7")
    (True, False)
    >>> one.release("7")
    >>> other.take("7")
    True
    """

    def __init__(self, folder: Path, lease: float = LEASE) -> None:
        self.folder, self.lease = folder, lease
        self.owner = {"host": socket.gethostname(), "process": os.getpid(), "token": os.urandom(8).hex()}
        self._seen: dict[str, tuple[str, float]] = {}  # what the claims of others said, and since when
        self._renewed, self._renewals = time.monotonic(), 0

    def take(self, name: str) -> bool:
        """Whether this worker may begin: nobody has the claim, or its owner is gone."""
        self._renewed, text = time.monotonic(), self._text()
        if write_once(self.folder / name, text):
            return True
        content = read(self.folder, name)
        if content == text:  # the reply of a network filesystem was lost, and the second try met the first
            return True
        if content is None or not self.abandoned(name, content):
            return False
        if read(self.folder, name) == content:
            (self.folder / name).unlink(missing_ok=True)
        return write_once(self.folder / name, text)

    def abandoned(self, name: str, content: str) -> bool:
        """Whether the owner of a claim that says this is gone; to be asked again and again."""
        if self._dead(facts_of(content)):
            return True
        before, since = self._seen.get(name, (None, 0.0))
        if before != content:
            self._seen[name] = (content, time.monotonic())
            return False
        return time.monotonic() - since > self.lease

    def _dead(self, facts: Mapping[str, Any]) -> bool:
        """Whether the process of this machine that made a claim has ended."""
        here = os.name == "posix" and facts.get("host") == self.owner["host"]
        if not here or not isinstance(facts.get("process"), int):
            return False
        try:
            os.kill(facts["process"], 0)  # sends nothing
        except (ProcessLookupError, OverflowError):
            return True
        except OSError:  # alive, and another user's
            return False
        return False

    def renew(self, name: str, done: int) -> None:
        """A sign of life, with how much is done; to be called often, written now and then."""
        if time.monotonic() - self._renewed < self.lease / RENEWALS:
            return
        self._renewed, self._renewals = time.monotonic(), self._renewals + 1
        with suppress(UserError):  # a full disk is told when the work itself is written
            if self._owns(name):
                write_text(self.folder / name, self._text(done))

    def release(self, name: str) -> None:
        if self._owns(name):
            (self.folder / name).unlink(missing_ok=True)

    def _owns(self, name: str) -> bool:
        return facts_of(read(self.folder, name) or "").get("token") == self.owner["token"]

    def _text(self, done: int = 0) -> str:
        return json.dumps(self.owner | {"renewals": self._renewals, "done": done})


def read(folder: Path, name: str) -> str | None:
    """What a claim says; None where there is none. Opening the file makes a network filesystem look again."""
    try:
        return read_regular(folder / name, LARGEST).decode("utf-8", "replace")
    except OSError:
        return None


def facts_of(content: str) -> dict[str, Any]:
    """Host, process, token and progress of a claim; nothing where it is damaged."""
    try:
        facts = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}
