"""Who may ask: requests meant for this server, from its own page or from no page at all, with the token it wants."""

import hmac
import ipaddress
import re
import socket
from hashlib import blake2b

from lookalike.search.serve.exchange import Exchange
from lookalike.search.serve.refusals import Refusal
from lookalike.search.serve.settings import LOCAL, Settings

HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*)(:[0-9]{0,5})?")
ONCE = ("host", "origin", "authorization")  # what decides who may ask must not have two meanings
OPEN = ("/", "/docs", "/docs.css", "/openapi.json", "/v1/health")  # they say nothing about the index


class Callers:
    """The hosts, origins and tokens that are let in."""

    def __init__(self, settings: Settings) -> None:
        self._hosts = {name.lower() for name in (*LOCAL, settings.host, socket.gethostname(), *settings.names)}
        self._token = settings.token

    def check(self, exchange: Exchange) -> None:
        for name in ONCE:
            if exchange.names.count(name) > 1:
                raise Refusal(400, f"The request has the header '{name}' more than once. Send it once.")
        self._check_host(exchange.headers.get("host", ""))
        self._check_origin(exchange.headers.get("host", ""), exchange.headers.get("origin"))
        path = exchange.scope["path"]
        if self._token is not None and path not in OPEN and not path.startswith("/static/"):
            self._check_token(exchange.headers.get("authorization", ""), self._token)

    def _check_host(self, host: str) -> None:
        """A name of this server, or an address: only names can be pointed at it by a stranger's DNS."""
        match = HOST.fullmatch(host)
        if match is None:
            raise Refusal(400, "The Host of the request is not the name or the address of a server.")
        name = match["name"].strip("[]")
        try:
            ipaddress.ip_address(name)
        except ValueError:
            if not name or name.lower().rstrip(".") not in self._hosts:
                raise Refusal(
                    403, "The request is addressed to a host name that this server does not serve (--name)."
                ) from None

    def _check_origin(self, host: str, origin: str | None) -> None:
        if origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
            raise Refusal(403, "Pages of other sites may not use this server.")

    def _check_token(self, authorization: str, expected: str) -> None:
        kind, _, token = authorization.partition(" ")
        right = hmac.compare_digest(_digest(token.strip()), _digest(expected))  # as slow for a near miss
        if not right or kind.lower() != "bearer":
            message = "Send the token of this server: Authorization: Bearer TOKEN."
            raise Refusal(401, message, {"WWW-Authenticate": "Bearer"})


def _digest(token: str) -> bytes:
    """Tokens of one length, so that not even the length of the right one shows in the time of a comparison."""
    return blake2b(token.encode("utf-8", "surrogateescape")).digest()
