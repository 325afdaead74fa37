"""A folder that is moved, deleted or restored under a server: nothing is acknowledged that nobody will find."""

import shutil
from contextlib import closing

import pytest

from lookalike.search import Index
from tests.search.serve.conftest import encoded
from tests.search.serve.inside import Inside


@pytest.mark.parametrize("how", ["moved", "deleted"])
def test_writes_and_searches_are_refused_until_the_folder_is_back(shop, tmp_path, how):
    with Inside(shop, log=False) as server:
        assert server.form("/v1/items", ("image", encoded()), ("id", "before")).status == 201
        shutil.copytree(shop, tmp_path / "kept")
        shop.rename(tmp_path / "elsewhere")
        if how == "deleted":
            shutil.rmtree(tmp_path / "elsewhere")
        for number in range(5):
            assert server.form("/v1/items", ("image", encoded()), ("id", f"lost {number}")).status == 503
        assert server("DELETE", "/v1/items/before").status == 503
        reply = server.form("/v1/search", ("image", encoded()))
        assert (reply.status, reply.json["error"]["code"]) == (503, "not_ready")
        (tmp_path / "kept").rename(shop)
        assert server.form("/v1/items", ("image", encoded()), ("id", "after")).status == 201
        assert server.form("/v1/search", ("image", encoded())).status == 200
    with closing(Index.open(shop)) as index:
        assert {item.id for item in index.store.items(["before", "after", "lost 0"])} == {"before", "after"}


def test_a_server_goes_on_with_what_was_restored(shop, tmp_path):
    with Inside(shop, log=False) as server:
        with closing(Index.open(shop)) as index:
            index.store.backup(tmp_path / "copy.sqlite")
        assert server.form("/v1/items", ("image", encoded()), ("id", "later")).status == 201
        Index.restore(shop, tmp_path / "copy.sqlite").close()
        assert server("GET", "/v1/items/later").status == 404
        hits = server.form("/v1/search", ("image", encoded()), ("k", "50")).json["hits"]
        assert (len(hits), "later" in {hit["item"]["id"] for hit in hits}) == (36, False)
        assert server.form("/v1/items", ("image", encoded()), ("id", "anew")).status == 201
    with closing(Index.open(shop)) as index:
        assert len(index) == 37
