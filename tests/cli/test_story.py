"""The whole story of docs/loop.md as a new user lives it: each command, and the words that it prints.

Glyphs stand for photos. The first model is poor on purpose, so that the second one can be seen to be better.
"""

import csv
import json
import re
from pathlib import Path

import pytest

from tests.cli.glyph_photos import glyph_photos
from tests.cli.processes import Completed, Lookalike
from tests.search.serve.client import Server

KNOWN, NEW, STRANGE = range(36), range(36, 42), range(60, 64)
POOR, BETTER = ("--set", "train.steps=2"), ("--set", "train.steps=40")


@pytest.fixture
def told(tmp_path, cache):
    """Runs a command in a folder of its own, with paths as a user writes them; it must succeed."""
    lookalike = Lookalike(tmp_path, cache)

    def tell(*words: object) -> Completed:
        done = lookalike(*(tmp_path / word if isinstance(word, Path) else word for word in words))
        assert done.code == 0, done.error
        return done

    return tell


def verdict(told, picture: Path) -> dict:
    (answer,) = json.loads(told("search", Path("shop.index"), picture, "--json").out)
    return answer


def test_from_photos_to_a_better_index(told, tmp_path):
    photos = glyph_photos(tmp_path / "photos", KNOWN, range(6))
    glyph_photos(tmp_path / "new_products", NEW, range(4))
    glyph_photos(tmp_path / "held_out", [*KNOWN[::3], *NEW], range(6, 8))
    asked = glyph_photos(tmp_path / "asked", [*KNOWN[1::3], *STRANGE], range(8, 11))

    first = told("fit", photos, "--out", Path("run"), *POOR)
    assert "searches put the right class first, on classes the model never saw" in first.out
    made = told("index", Path("run/model"), photos, "--out", Path("shop.index"))
    assert "216 added" in made.out
    grown = told("index", Path("run/model"), Path("new_products"), "--out", Path("shop.index"))
    assert "24 added" in grown.out
    assert "240 items in" in grown.out
    calibrated = told("calibrate", Path("shop.index"), Path("held_out"), "--precision", 0.6)
    assert "Measured with " in calibrated.out

    queries = sorted(asked.rglob("*.png"))
    assert verdict(told, queries[0])["verdict"] in ("sure", "maybe", "unknown")
    marks = mark(tmp_path / "shop.index", queries)
    assert f"{marks[True]} right, {marks[False]} wrong (Ann " in told("status", Path("shop.index")).out
    table = told("labels", Path("shop.index"), "--out", Path("marked.csv"))
    assert re.search(r"\d+ images of \d+ classes in ", table.out)
    assert f"{sum(marks.values())} pairs in " in table.out
    with (tmp_path / "marked.csv").open() as file:
        assert {"path", "label", "not_label"} == set(csv.DictReader(file).fieldnames)

    second = told("fit", photos, "--with", Path("shop.index"), "--out", Path("better"), *BETTER)
    assert f"{marks[True]} right, {marks[False]} wrong" in second.error
    assert re.search(r"\d+ marked images join 216 with their labels, \d+ as negatives", second.error)
    assert "Against the model in use: " in second.out
    assert "Better than the model in use, map@r +" in second.out
    assert "moves to this model" in second.out
    status = json.loads(told("status", Path("shop.index"), "--json", "--check").out)
    assert (status["generation"], status["items"], status["troubles"]) == (2, 240, [])
    assert "by the run that made the model" in status["calibration"]
    assert verdict(told, queries[0])["hits"]

    third = told("fit", photos, "--with", Path("shop.index"), "--out", Path("worse"), *POOR)
    assert "Not surely better than the model in use" in third.out
    assert json.loads(told("status", Path("shop.index"), "--json").out)["generation"] == 2


def mark(place: Path, queries: list[Path]) -> dict[bool, int]:
    """What Ann thinks of the first hits of every query, as the page sends it."""
    counts = {True: 0, False: 0}
    with Server(place) as server:
        for query in queries:
            picture = ("image", query.read_bytes())
            answer = server.search(picture, ("k", "3")).json
            for hit in answer["hits"]:
                right = hit["item"]["label"] == query.parent.name
                counts[right] += 1
                fields = (("item", hit["item"]["id"]), ("right", str(right).lower()), ("by", "Ann"))
                assert server.form("/v1/feedback", picture, *fields).status == 201
    return counts
