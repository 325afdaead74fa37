"""Who may ask: requests meant for this server, from its own page or from no page at all, with a key that allows it."""

import ipaddress
import re
import socket

from lookalike.search.serve.exchange import Exchange
from lookalike.search.serve.keyring import Keyring, scope_of
from lookalike.search.serve.refusals import Refusal
from lookalike.search.serve.settings import LOCAL, Settings

HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*)(:[0-9]{0,5})?")
ONCE = ("host", "origin", "authorization")  # what decides who may ask must not have two meanings
# they say nothing about the index
OPEN = ("/", "/watch", "/review", "/docs", "/docs.css", "/openapi.json", "/v1/health")


class Callers:
    """The hosts, origins and keys that are let in."""

    def __init__(self, settings: Settings, keyring: Keyring) -> None:
        self._hosts = {name.lower() for name in (*LOCAL, settings.host, socket.gethostname(), *settings.names)}
        self._keyring = keyring

    def check(self, exchange: Exchange) -> None:
        for name in ONCE:
            if exchange.names.count(name) > 1:
                raise Refusal(400, f"The request has the header '{name}' more than once. Send it once.")
        self._check_host(exchange.headers.get("host", ""))
        self._check_origin(exchange.headers.get("host", ""), exchange.headers.get("origin"))
        path = exchange.scope["path"]
        if path not in OPEN and not path.startswith("/static/"):
            secret = _secret(exchange.headers.get("authorization", ""))
            exchange.caller = self._keyring.caller(secret, scope_of(exchange.scope["method"], path))

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


def _secret(authorization: str) -> str | None:
    kind, _, secret = authorization.partition(" ")
    return secret.strip() if kind.lower() == "bearer" else None
