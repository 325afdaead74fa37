"""`lookalike keys`, `lookalike log` and `lookalike remove --forget`, as a user runs them."""

import json
from contextlib import closing

import numpy as np

from lookalike.search import Index
from lookalike.search.items import Item
from tests.cli.processes import Lookalike


def test_keys_forgetting_and_who_did_it(tmp_path):
    place, run = tmp_path / "shop.index", Lookalike(tmp_path)
    with closing(Index.create(place, dim=3)) as index:
        index.store.put([Item("vase"), Item("cup")], np.eye(2, 3, dtype=np.float32))
    given = run("keys", place, "add", "till", "--scope", "search", "--days", "30")
    assert (given.code, given.out.startswith("lookalike_")) == (0, True)
    assert run("keys", place, "add").error.strip() == (
        "lookalike: give the name of the key: lookalike keys INDEX add NAME"
    )
    assert "till                 valid    search" in run("keys", place).out
    assert "revoked" in run("keys", place, "revoke", "till").out
    receipt = json.loads(run("remove", place, "vase", "--forget", "--json").out)
    assert (receipt["ids"], receipt["items"], "cache" in receipt["rewritten"]) == (["vase"], 1, True)
    assert "0 items and 0 marks forgotten" in run("remove", place, "vase", "--forget").out
    assert json.loads(run("remove", place, "cup", "--json").out) == {"removed": 1, "left": 0}
    log = run("log", place).out
    assert [line.split("  ")[2] for line in log.splitlines()] == [
        "key added",
        "key revoked",
        "item forgotten",
        "item forgotten",
        "item removed",
    ]
    assert given.out.strip() not in log
    for chosen in (["--last", "1"], ["--item", "cup"]):
        entries = json.loads(run("log", place, *chosen, "--json").out)
        assert [entry["action"] for entry in entries] == ["item removed"]
