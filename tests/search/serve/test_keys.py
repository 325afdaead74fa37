"""Keys over HTTP: each opens what its scopes name, until it ends or is taken back; the log says whose it was."""

import asyncio
import json
import time
from contextlib import closing

import pytest

from lookalike.search import Index, keys
from lookalike.search.log import subject_of
from lookalike.search.serve.keyring import Keyring
from lookalike.search.serve.refusals import Refusal
from tests.search.serve.client import multipart
from tests.search.serve.conftest import encoded
from tests.search.serve.inside import Inside

ITEM = "table/figs0.png"


def given(place, **scopes):
    with closing(Index.open(place)) as index:
        return {name: keys.add(index.store.log, name, some, None, "me") for name, some in scopes.items()}


def status(app, secret, method, path, body=b"", kind="application/json"):
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    return app(method, path, body, Content_Type=kind, **headers).status


def statuses(app, secret):
    """Of a search, a mark, a new item, and the log."""
    search, mark = {"item": ITEM}, {"item": ITEM, "query_item": "table/figs1.png", "right": True}
    picture, kind = multipart([("image", encoded()), ("id", "new")])
    return (
        status(app, secret, "POST", "/v1/search", json.dumps(search).encode()),
        status(app, secret, "POST", "/v1/feedback", json.dumps(mark).encode()),
        status(app, secret, "POST", "/v1/items", picture, kind),
        status(app, secret, "GET", "/v1/log"),
    )


def test_a_key_opens_what_its_scopes_name(shop):
    secrets = given(shop, reader=["search"], marker=["search", "mark"], writer=["write"], boss=["admin"])
    with Inside(shop, token="old", log=False) as app:
        assert statuses(app, secrets["reader"]) == (200, 403, 403, 403)
        assert statuses(app, secrets["marker"]) == (200, 201, 403, 403)
        assert statuses(app, secrets["writer"]) == (403, 403, 201, 403)
        assert statuses(app, secrets["boss"]) == (200, 201, 201, 200)
        assert statuses(app, "old") == (200, 201, 201, 200)  # the one token of the server
        for wrong in (None, "", "lookalike_", secrets["boss"][:-1], f"{secrets['boss']}x"):
            assert statuses(app, wrong) == (401, 401, 401, 401)
        refusal = app("GET", "/v1/log", Authorization=f"Bearer {secrets['marker']}")
        assert refusal.message == "This key may search and mark; the request needs one that may admin."
        entries = app("GET", "/v1/log", Authorization="Bearer old").json["entries"]
    acts = [(entry["who"], entry["action"], entry["subject"]) for entry in entries if entry["who"] != "me"]
    assert ("marker", "marked right", subject_of(ITEM)) in acts
    assert ("writer", "item added", subject_of("new")) in acts
    assert ("the token of the server", "item added", subject_of("new")) in acts
    assert "digest" not in json.dumps(entries)


def test_a_key_ends_when_it_is_taken_back(shop):
    secret = given(shop, reader=["search"])["reader"]
    with Inside(shop, log=False) as app:
        assert status(app, secret, "GET", "/v1/index") == 200
        assert status(app, None, "GET", "/v1/index") == 401  # where there are keys, nobody comes in without
        assert status(app, None, "GET", "/v1/health") == 200
        with closing(Index.open(shop)) as index:
            keys.revoke(index.store.log, "reader", "me")
        until = time.monotonic() + 20
        while status(app, secret, "GET", "/v1/index") != 401:
            assert time.monotonic() < until
            app.loop.run_until_complete(asyncio.sleep(0.1))


def test_a_key_ends_with_its_time():
    key = keys.Key("till", keys.digest_of("secret"), ("search",), 0.0, expires=time.time() + 60)
    ring = Keyring(known=[key])
    assert ring.caller("secret", "search") == "till"
    ring.known = [keys.Key("till", key.digest, ("search",), 0.0, expires=time.time() - 1)]
    with pytest.raises(Refusal, match=r"401|valid"):
        ring.caller("secret", "search")


def test_a_backup_from_before_the_keys_opens_no_server(shop, tmp_path):
    with closing(Index.open(shop)) as index:
        index.store.backup(tmp_path / "copy.sqlite")
    secret = given(shop, reader=["search"])["reader"]
    with Inside(shop, log=False) as app:
        Index.restore(shop, tmp_path / "copy.sqlite").close()
        app.door.app.state.engine.look_ahead()
        assert status(app, None, "GET", "/v1/index") == 401
        assert status(app, secret, "GET", "/v1/index") == 200


def test_a_key_that_was_taken_back_stays_so_when_a_backup_from_before_is_restored(shop, tmp_path):
    secret = given(shop, reader=["search"], other=["search"])["reader"]
    with closing(Index.open(shop)) as index:
        index.store.backup(tmp_path / "copy.sqlite")
        keys.revoke(index.store.log, "reader", "me")
    with Inside(shop, log=False) as app:
        engine = app.door.app.state.engine
        engine.look_ahead()
        assert status(app, secret, "GET", "/v1/index") == 401
        Index.restore(shop, tmp_path / "copy.sqlite").close()
        engine.look_ahead()
        assert status(app, secret, "GET", "/v1/index") == 401
        with closing(Index.open(shop)) as index:
            new = keys.add(index.store.log, "new", ["search"], None, "me")
        engine.look_ahead()
        assert (status(app, new, "GET", "/v1/index"), status(app, secret, "GET", "/v1/index")) == (200, 401)


def test_without_keys_everybody_may_do_everything(shop):
    with Inside(shop, log=False) as app:
        assert statuses(app, None) == (200, 201, 201, 200)
