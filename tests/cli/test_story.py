"""The whole story of docs/loop.md as a new user lives it: the commands of its blocks, and the words that they print.

Glyphs stand for photos. The first model is poor on purpose, so that the second one can be seen to be better.
"""

import csv
import json
import re
from pathlib import Path

import pytest

from tests.cli.glyph_photos import glyph_photos
from tests.cli.processes import Completed, Lookalike
from tests.fixtures.shop import photo
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


def answers(told, *pictures: Path) -> list[dict]:
    return json.loads(told("search", Path("shop.index"), *pictures, "--json").out)


def most_certain(rows: list[dict], classes: range) -> Path:
    """The picture of one of these classes whose label has the highest chance."""
    some = [row for row in rows if Path(row["path"]).parent.name in {f"glyph {number}" for number in classes}]
    return Path(max(some, key=lambda row: float(row["chance"]))["path"])


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
    calibrated = told("calibrate", Path("shop.index"), Path("held_out"))
    assert "Measured with 36 pictures of 18 classes, among 240 items; each class in turn was absent" in calibrated.out
    assert "No answer is called sure: 18 classes like these cannot promise 60%" in calibrated.out

    queries = sorted(asked.rglob("*.png"))
    found = told("search", Path("shop.index"), queries[0], "--page", Path("hits.html"))
    assert re.search(r"^something like glyph \d+, not sure which \(match \d+%, chance \d+%\)\. About ", found.out, re.M)
    assert f"page    {tmp_path / 'hits.html'}" in found.out
    assert "<strong>something like glyph " in (tmp_path / "hits.html").read_text()
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

    again = told("calibrate", Path("shop.index"))
    assert "At least 60% of the answers called sure are right" in again.out
    named = told("classify", Path("shop.index"), asked, Path("held_out"), "--out", Path("labels.csv"))
    assert re.match(r"84 of 84 pictures in .*labels\.csv \(.*\d+ sure.*\)", named.out)
    with (tmp_path / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["label"], row["second"]) for row in rows if row["verdict"] == "unknown"} == {("", "")}
    strange = [tmp_path / f"{number}.png" for number in range(3)]
    for number, file in enumerate(strange):
        photo(5 * number, 0).save(file)
    known, new = most_certain(rows, KNOWN), most_certain(rows, NEW)
    words = [answer["words"] for answer in answers(told, known, new, *strange)]
    assert words[0] == f"sure: {known.parent.name}"
    assert words[1] in (f"sure: {new.parent.name}", f"probably {new.parent.name}")
    assert words[2:] == ["nothing like it here"] * 3

    third = told("fit", photos, "--with", Path("shop.index"), "--out", Path("worse"), *POOR)
    assert "Not surely better than the model in use" in third.out
    assert json.loads(told("status", Path("shop.index"), "--json").out)["generation"] == 2


def mark(place: Path, queries: list[Path]) -> dict[bool, int]:
    """What Ann thinks of the first hits of every query, as the page of `serve` sends it."""
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
