"""Keys that open a server: the one token it was started with, and those that the index keeps."""

import hmac
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lookalike.search import keys
from lookalike.search.keys import SCOPES, Key, Scope
from lookalike.search.serve.refusals import Refusal
from lookalike.search.stores import ActionLog

ANYBODY, TOKEN = "anybody", "the token of the server"
ROUTES: Sequence[tuple[str, str, Scope]] = (  # method (any: ""), start of the path, and what it takes
    ("", "/v1/log", "admin"),
    ("", "/v1/watch", "admin"),
    ("", "/v1/feedback", "mark"),
    ("", "/v1/review", "mark"),
    ("POST", "/v1/items", "write"),
    ("DELETE", "/v1/items", "write"),
)


def scope_of(method: str, path: str) -> Scope:
    """What a key must allow for a request.

    >>> scope_of("DELETE", "/v1/items/7"), scope_of("GET", "/v1/items/7"), scope_of("POST", "/v1/search")
    ('write', 'search', 'search')
    """
    return next((scope for way, start, scope in ROUTES if method.startswith(way) and path.startswith(start)), "search")


@dataclass
class Keyring:
    """Whose key a request brings; without a token and without keys everybody may do everything."""

    token: str | None = None
    known: Sequence[Key] = ()

    def refresh(self, log: ActionLog) -> None:
        """Look for keys that were given or taken back.

        A restored index may have none: then the old ones still count. One that was taken back stays so.
        """
        revoked = {key.digest: key.revoked for key in self.known if key.revoked is not None}
        found = [replace(key, revoked=revoked.get(key.digest, key.revoked)) for key in keys.every(log)]
        self.known = found or self.known

    def caller(self, secret: str | None, scope: Scope) -> str:
        """The name of whoever has this key, if it allows that."""
        if self.token is None and not self.known:
            return ANYBODY
        digest, now = keys.digest_of(secret or ""), time.time()
        # as slow for a near miss
        if self.token is not None and hmac.compare_digest(digest, keys.digest_of(self.token)):
            return TOKEN
        key = next((key for key in self.known if key.digest == digest and key.valid(now)), None)
        if secret is None or key is None:
            message = "Send a valid key: Authorization: Bearer KEY."
            raise Refusal(401, message, {"WWW-Authenticate": "Bearer"})
        if scope not in key.scopes and "admin" not in key.scopes:
            may = " and ".join(one for one in SCOPES if one in key.scopes)
            raise Refusal(403, f"This key may {may}; the request needs one that may {scope}.")
        return key.name
