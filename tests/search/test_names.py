"""Files whose names are not UTF-8 are indexed, found, listed and served like all others."""

import csv
import json
import os
import shutil
import sys

import pytest
from typer.testing import CliRunner

from lookalike.cli import app, main
from lookalike.search import Index
from lookalike.search.items import Mark
from tests.search.conftest import photo
from tests.search.serve.inside import Inside

CLASS, NAME = os.fsdecode(b"cl\xe4ss"), os.fsdecode(b"caf\xe9\n.png")
SHOWN = "cl\\xe4ss/caf\\xe9\\n.png"


@pytest.fixture(scope="module")
def place(tmp_path_factory, model):
    root = tmp_path_factory.mktemp("names")
    (root / "photos" / CLASS).mkdir(parents=True)
    photo("figs", 0).save(root / "photos" / CLASS / "plain.png")
    shutil.copy(root / "photos" / CLASS / "plain.png", root / "photos" / CLASS / NAME)
    model.save(root / "model")
    assert call("index", root / "model", root / "photos", "--out", root / "shop.index")
    return root


def call(*words):
    """What a verb prints; it must be UTF-8, as the runner insists."""
    ended = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    return ended.output


def test_searches_name_them(place):
    query = place / "photos" / CLASS / NAME
    assert SHOWN in call("search", place / "shop.index", query, "--page", place / "search.html")
    (answer,) = json.loads(call("search", place / "shop.index", query, "--json"))
    assert answer["query"].endswith(SHOWN)
    assert {hit["path"].split("/", 2)[0] for hit in answer["hits"]} == {""}
    assert any(hit["path"].endswith(SHOWN) for hit in answer["hits"])
    assert "caf" in (place / "search.html").read_text(encoding="utf-8")


def test_tables_and_lists_name_them(place):
    index, photos = place / "shop.index", place / "photos"
    assert SHOWN in call("duplicates", index, "--page", place / "duplicates.html")
    (group,) = json.loads(call("duplicates", index, "--json"))
    assert SHOWN in group["items"][0]["path"] + group["items"][1]["path"]
    assert (place / "duplicates.html").read_text(encoding="utf-8")
    call("classify", index, photos, "--out", place / "classes.csv")
    with (place / "classes.csv").open(encoding="utf-8") as file:
        assert [row["path"].endswith(SHOWN) for row in csv.DictReader(file)].count(True) == 1
    store = Index.open(index).store
    first, second = (item.id for item in store.listed())
    store.marks.add(Mark(f"item:{first}", first, second, True))
    store.close()
    call("labels", index, "--out", place / "labels.csv")
    for name in ("labels.csv", "labels.pairs.csv"):
        assert SHOWN in (place / name).read_text(encoding="utf-8")


def test_one_such_file_is_indexed_and_served(place, tmp_path):
    output = call("index", place / "model", place / "photos" / CLASS / NAME, "--out", tmp_path / "one.index")
    assert f"{SHOWN}: 1 added" in output
    assert call("index", place / "model", place / "photos" / CLASS / NAME, "--out", tmp_path / "one.index")
    assert len(Index.open(tmp_path / "one.index")) == 1
    with Inside(place / "shop.index", log=False) as server:
        content = server("GET", "/v1/index")
        assert content.status == 200
        assert "caf\\xe9\\n.png" in {item["path"] for item in content.json["newest"]}


def test_whatever_is_printed_never_ends_a_command(monkeypatch, capfdbinary):
    """Places that verbs repeat as they were written may hold any bytes."""
    with open(1, "w", encoding="utf-8", closefd=False) as output:
        monkeypatch.setattr(sys, "stdout", output)
        monkeypatch.setattr("lookalike.cli.app", lambda: print(CLASS))
        main()
    assert capfdbinary.readouterr().out == b"cl\\udce4ss\n"


def test_a_terminal_takes_no_orders_from_a_file(tmp_path, capsys, monkeypatch):
    """A title of a window, and whatever else a terminal does when it reads it."""
    (tmp_path / "table.csv").write_text("\x1b]0;owned\x07,label\na.jpg,x\n")
    monkeypatch.setattr("sys.argv", ["lookalike", "fit", str(tmp_path / "table.csv"), "--out", str(tmp_path / "run")])
    with pytest.raises(SystemExit, match="2"):
        main()
    said = capsys.readouterr().err
    assert "its first line is \\x1b]0;owned\\x07, label" in said
    assert "\x1b" not in said
