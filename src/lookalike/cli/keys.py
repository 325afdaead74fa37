"""`lookalike keys INDEX [list|add NAME|revoke NAME]`: who may ask a server what, until when."""

import json
import time
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer

from lookalike.errors import check

EXAMPLE = "lookalike keys shop.index add shop-app --scope search --days 90"


class Action(StrEnum):
    """What to do with keys."""

    LIST = "list"
    ADD = "add"
    REVOKE = "revoke"


def run(
    place: Annotated[str, typer.Argument(metavar="INDEX", help="A folder or postgresql:// address.")],
    action: Annotated[Action, typer.Argument(help="What to do.")] = Action.LIST,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The name of the key, such as that of its owner.")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", help="What the key allows: search, mark, write or admin (everything)."),
    ] = None,
    days: Annotated[
        float | None, typer.Option("--days", help="Days that the key is valid. Default: until revoked.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")] = False,
) -> None:
    """Create, list and revoke keys of a server.

    `lookalike serve` asks for them, and a running server notices changes at once. A key is printed only once; the index
    keeps its digest. `lookalike log` records every change.
    """
    from lookalike.search import Index, keys
    from lookalike.search.log import this_user

    log = Index.open(place).store.log
    check((name is None) == (action is Action.LIST), "give the name of the key: lookalike keys INDEX add NAME")
    if action is Action.ADD:
        secret = keys.add(log, str(name), scope or [], days, this_user())
        typer.echo(json.dumps({"name": name, "key": secret}) if as_json else secret)
        return
    if action is Action.REVOKE:
        keys.revoke(log, str(name), this_user())
    now = time.time()
    known = keys.every(log)
    if as_json:
        typer.echo(json.dumps([key.as_json(now) for key in known], indent=2, ensure_ascii=False))
        return
    for key in known:
        state = "valid" if key.valid(now) else "revoked" if key.revoked is not None else "expired"
        until = "until revoked" if key.expires is None else f"until {_day(key.expires)}"
        typer.echo(f"{key.name:<20} {state:<8} {', '.join(key.scopes):<28} since {_day(key.added)}, {until}")


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
