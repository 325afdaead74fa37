"""What is noted about every request: numbers for the meters, and one line for the operator."""

import json
import sys
import time

from lookalike.search.serve.exchange import Exchange
from lookalike.search.serve.meters import Meters


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
