"""The address of an index on PostgreSQL: `postgresql://user@host/database?index=shop`.

`index` is the schema that holds the tables (`lookalike` where it is not given), so a database may have several. Several
hosts in one address are a primary and its replicas, as libpq writes them; several addresses with commas between them
are the shards of one index.
"""

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlsplit

from lookalike.errors import UserError, check

SCHEMES = ("postgresql", "postgres")
DEFAULT = "lookalike"
NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_-]{0,47}")
SECRET = ("password", "sslpassword", "passfile")
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
HOST = r"(\[[^\]]*\]|[^:\[\]]*)(:\d*)?"
HOSTS = re.compile(rf"{HOST}(,{HOST})*")


@dataclass(frozen=True)
class Address:
    """Where one server keeps one index."""

    url: str  # as libpq reads it
    index: str
    shown: str  # for people: without the password

    @property
    def name(self) -> str:
        """That of the index, or of its database where it has the usual one."""
        database = urlsplit(self.url).path.strip("/")
        return database if self.index == DEFAULT and database else self.index


def is_address(place: object) -> bool:
    """Whether a place is on a server rather than in a folder; an address of another kind is refused.

    >>> is_address("postgresql://server/shop"), is_address("shop.index")
    (True, False)
    """
    if not isinstance(place, str) or URL.match(place) is None:
        return False
    scheme = place.partition("://")[0]
    check(scheme in SCHEMES, f"an index is in a folder or at an address postgresql://…, not at {scheme}://…")
    return True


def addresses(text: str) -> list[Address]:
    """The addresses in a text, one for each shard.

    >>> [address.shown for address in addresses("postgresql://me:secret@a/db,postgresql://b/db?index=shop")]
    ['postgresql://me@a/db', 'postgresql://b/db?index=shop']
    >>> addresses("postgresql:///shop?host=/run&password=secret")[0].shown
    'postgresql:///shop?host=/run'
    """
    every = [_address(part) for part in re.split(rf",\s*(?=(?:{'|'.join(SCHEMES)})://)", text)]
    check(
        len({(one.url, one.index) for one in every}) == len(every), "two shards have the same address: give each once"
    )
    return every


def _address(text: str) -> Address:
    try:
        parts = urlsplit(text)
    except ValueError:  # of a bracket
        raise _unreadable() from None
    user, at, host = parts.netloc.rpartition("@")
    options = parse_qsl(parts.query, keep_blank_values=True)
    rest = "".join((user, parts.path, *dict(options)))
    # a sign that ends the password too early would have its rest shown as a host, a port, a database or an option
    if "@" in rest or parts.fragment or HOSTS.fullmatch(host) is None:
        raise _unreadable()
    index = dict(options).get("index", DEFAULT)
    check(
        NAME.fullmatch(index) is not None,
        f"'{index}' cannot be the name of an index: use up to 48 lower-case letters, digits, _ and -",
    )
    plain = [(name, value) for name, value in options if name != "index"]
    named = [] if index == DEFAULT else [("index", index)]
    public = [(name, value) for name, value in plain if name not in SECRET] + named
    start, server = f"{parts.scheme}://", f"{user.partition(':')[0]}{at}{host}"
    return Address(
        f"{start}{parts.netloc}{parts.path}{_query(plain)}", index, f"{start}{server}{parts.path}{_query(public)}"
    )


def _unreadable() -> UserError:
    """For an address that may show a password."""
    return UserError(
        "the address cannot be read: write postgresql://user:password@host/database, and any of # / ? @ [ ] : in the "
        "user's name or password as %23 %2F %3F %40 %5B %5D %3A"
    )


def _query(options: list[tuple[str, str]]) -> str:
    text = "&".join(f"{name}={quote(value, safe='/,')}" for name, value in options)
    return f"?{text}" if text else ""
