"""Who may ask the server of a review what, how much one answer holds, and whose words they were; nothing waits."""

import asyncio
import json
from contextlib import closing
from functools import partial

import numpy as np
import pytest

from lookalike.discover import journal
from lookalike.discover.beginning import begin
from lookalike.discover.grouping import hierarchy
from lookalike.discover.photos import photos
from lookalike.discover.review.routes import add_begun, create_app
from lookalike.discover.review.strips import Strips
from lookalike.discover.review.view import strip_forms
from lookalike.discover.session import ReviewSession
from lookalike.errors import UserError
from lookalike.search import Index, keys
from lookalike.search.items import Item
from lookalike.search.serve import app
from lookalike.search.serve.meters import Meters
from lookalike.search.serve.settings import Settings
from tests.search.serve.inside import Inside

served = partial(app.create_app, further=(add_begun,))
ROUTES = (("GET", "/v1/review"), ("POST", "/v1/review"), ("GET", "/v1/review/photos/0"))


@pytest.fixture
def shop(tmp_path):
    """An index of six kinds, a review of it that was begun, and keys by what they may do."""
    draw = np.random.default_rng(0)
    vectors = (np.repeat(np.eye(6, 16), 8, 0) + 0.15 * draw.normal(size=(48, 16))).astype(np.float32)
    with closing(Index.create(tmp_path / "shop.index", dim=16)) as index:
        index.store.put([Item(f"{row:02d}") for row in range(48)], vectors / np.linalg.norm(vectors, axis=1)[:, None])
        given = photos(str(tmp_path / "shop.index"), None, lambda _: None)
        begin(tmp_path / "shop.index.review", given, hierarchy(given.vectors, given.known), "one")
    return tmp_path / "shop.index"


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


def named(version, name, **headers):
    word = {"version": version, "do": "name", "photos": [version], "name": name}
    return ("POST", "/v1/review", json.dumps(word).encode()), {"Content_Type": "application/json", **headers}


@pytest.mark.parametrize("create", [create_app, served])
def test_every_route_takes_a_key_that_may_mark(shop, create):
    with closing(Index.open(shop)) as index:
        may = {scope: keys.add(index.store.log, scope, [scope], None, "me") for scope in ("search", "mark", "write")}
    with Inside(shop, create, token="token", look=0.01) as ask:
        for method, path in ROUTES:
            assert ask(method, path).status == ask(method, path, **bearer("guess")).status == 401
            assert ask(method, path, **bearer(may["search"])).status == 403
            assert ask(method, path, **bearer(may["write"])).status == 403
            assert ask(method, path, **bearer(may["mark"])).status not in (401, 403)
            assert ask(method, path, Host="evil.example", **bearer("token")).status == 403
            assert ask(method, path, Origin="http://evil.example", **bearer("token")).status == 403
        assert ask("GET", "/review").status == 200  # the page itself says nothing
        request, headers = named(0, "cup", **bearer(may["mark"]))
        assert ask(*request, **headers).json["classes"] == ["cup"]
        request, headers = named(1, "cup", **bearer(may["mark"]))
        assert ask(*request, **headers).status == 200
        with closing(Index.open(shop)) as index:
            keys.revoke(index.store.log, "mark", "me")
            who = [entry.who for entry in index.store.log.entries() if entry.action == "marked right"]
            assert who == ["mark"]  # of two photos of one name; whose word it was, not which program wrote it
        for _ in range(200):
            if ask("GET", "/v1/review", **bearer(may["mark"])).status == 401:
                break
            ask.loop.run_until_complete(asyncio.sleep(0.01))
        else:
            raise AssertionError("the key opens it still")


def test_an_index_with_keys_is_not_reviewed_without_one(shop):
    with closing(Index.open(shop)) as index:
        keys.add(index.store.log, "till", ["search"], None, "me")
    with Inside(shop, create_app) as ask:
        assert ask("GET", "/v1/review").status == 401


def test_a_server_that_is_read_only_keeps_no_word(shop):
    for create in (create_app, served):
        with Inside(shop, create, read_only=True) as ask:
            request, headers = named(0, "cup")
            assert ask(*request, **headers).status == 403
    assert journal.entries(shop.with_name("shop.index.review") / "answers.jsonl") == []


def test_what_is_no_word_is_refused(shop):
    with Inside(shop, create_app) as ask:
        for body, status in (
            (b"{" * 70_000, 413),
            (b"[" * 60_000, 400),
            (b'{"version": 0, "do": "level", "fineness": NaN}', 422),
            (b'{"version": 0, "do": "name", "photos": [0], "name": "\\ud800"}', 422),
            (b'{"version": 0, "do": "out", "photos": [-1]}', 400),
            (b'{"version": 0, "do": "out", "photos": [' + b"9" * 4000 + b"]}", 400),
            (b'{"version": 0, "do": "merge", "group": ' + b"9" * 30 + b', "other": 0}', 400),
        ):
            reply = ask("POST", "/v1/review", body, Content_Type="application/json")
            assert reply.status == status, body[:60]
            assert reply.message
        for path in ("/v1/review?count=2001", "/v1/review?count=x", "/v1/review/photos/x", "/v1/review/photos/..%2f.."):
            assert ask("GET", path).status == 422, path
        for path in ("/v1/review/photos/-1", "/v1/review/photos/" + "9" * 30):
            assert ask("GET", path).status == 400, path
        assert ask("GET", "/v1/review").json["version"] == 0


def test_one_answer_does_not_hold_everything(place):
    """Whoever asks for all strips, and does not read them, fills no memory."""
    session = ReviewSession(place)
    strips = Strips(session.kept.whole.vectors, session.mended)
    assert [strip.size for strip in strip_forms(session, strips, 2000, most=20)] == [12] * 2
    assert len(strip_forms(session, strips, 2000)) == len(strips.numbers)


def test_a_review_of_other_photos_is_not_shown_with_an_index(shop, tmp_path, place):
    """A folder that came with an index names files of the reader's: a key to mark would show them."""
    (tmp_path / "shop.index.review" / "found.npz").write_bytes((place / "found.npz").read_bytes())
    for create in (create_app, served):
        with pytest.raises(UserError, match=r"shop.index.review' are no items of an index: delete it"):
            create(Settings(shop), Meters(), lambda: None, lambda _: None)


def test_what_is_forgotten_does_not_come_back(shop):
    review = shop.with_name("shop.index.review")
    for right in ("09", "17"):
        journal.append(review / "answers.jsonl", {"do": "different", "left": "08", "right": right})
    with Inside(shop, create_app), closing(Index.open(shop)) as index:
        assert [mark.item for mark in index.store.marks.every()] == ["09", "17"]
        receipt = index.forget(["09"])
    assert f"'{review}', where a review keeps vectors and names of them: delete it" in receipt.beyond
    with Inside(shop, create_app) as ask, closing(Index.open(shop)) as index:
        assert [mark.item for mark in index.store.marks.every()] == ["17"]
        assert ask("GET", "/v1/review/photos/9").status == 404
