"""The door of the application: who may ask, how much may come in, what every answer carries, and a line about it."""

import sys
import traceback
from collections.abc import Callable
from typing import Any

from lookalike.search.serve.bodies import Bodies
from lookalike.search.serve.callers import Callers
from lookalike.search.serve.exchange import Exchange, Scope
from lookalike.search.serve.keyring import Keyring
from lookalike.search.serve.meters import Meters
from lookalike.search.serve.refusals import Refusal, crowded, internal
from lookalike.search.serve.request_log import note
from lookalike.search.serve.settings import Settings


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
