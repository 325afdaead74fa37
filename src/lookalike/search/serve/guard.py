"""The door of the application: who may ask, how much may come in, what every answer carries, and a line about it.

Let in are requests meant for this server, from its own page or from no page at all, with a key that allows it.
"""

import ipaddress
import json
import re
import socket
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from lookalike.search.serve.bodies import Bodies
from lookalike.search.serve.exchange import Exchange, Scope
from lookalike.search.serve.keyring import Keyring, scope_of
from lookalike.search.serve.meters import Meters
from lookalike.search.serve.refusals import Refusal, crowded, internal
from lookalike.search.serve.settings import LOCAL, Settings

HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*)(:[0-9]{0,5})?")
ONCE = ("host", "origin", "authorization")  # what decides who may ask must not have two meanings
# they say nothing about the index
OPEN = ("/", "/watch", "/review", "/docs", "/docs.css", "/openapi.json", "/v1/health")


class Guard:
    """An ASGI application around another one."""

    def __init__(
        self, app: Callable[..., Any], settings: Settings, meters: Meters, keyring: Keyring | None = None
    ) -> None:
        self.app, self.settings, self.meters = app, settings, meters
        self.bodies, self.callers = Bodies(settings), Callers(settings, keyring or Keyring(settings.token))

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send, self.bodies)
        try:
            if scope.get("state", {}).get("crowded"):
                raise crowded()
            self.callers.check(exchange)
            with self.bodies.admitted(exchange.body):
                await self.app(exchange.scope | {"caller": exchange.caller}, exchange.body.receive, exchange.send)
        except Refusal as refusal:
            await exchange.refuse(refusal)
        except Exception:
            traceback.print_exc(file=sys.stderr)  # for the operator; the caller gets the request id to name
            await exchange.refuse(internal())
        finally:
            note(exchange, self.meters, self.settings.log)


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


def note(exchange: Exchange, meters: Meters, log: bool) -> None:
    """Count a request that is done; with `log` also write a line about it."""
    seconds = time.perf_counter() - exchange.began
    meters.request(route_of(exchange.scope["path"]), exchange.status, seconds)
    if log:
        line = {
            "time": round(time.time(), 3),
            "request": exchange.request,
            "method": exchange.scope["method"],
            "path": exchange.scope["path"][:200],
            "status": exchange.status,
            "sent": exchange.sent,
            "received": exchange.body.received,
            "ms": round(1e3 * seconds, 2),
            "caller": exchange.caller,
            "client": (exchange.scope.get("client") or ("",))[0],
        }
        sys.stderr.write(json.dumps(line) + "\n")


def route_of(path: str) -> str:
    """The route for the meters: an id is not a name for a series."""
    if path.startswith("/v1/items"):
        return "/v1/items/thumbnail" if path.endswith("/thumbnail") else "/v1/items"
    if path.startswith("/static/"):
        return "/static"
    return "/v1/feedback" if path.startswith("/v1/feedback") else path
