"""Pages of a search, a calibration and duplicates: words and pictures of what is in the index, nothing from outside."""

import base64
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from lookalike.search import Index
from lookalike.search.adding.update import digest_of
from lookalike.search.calibration.measuring import Calibrated
from lookalike.search.calibration.thresholds import calibrate
from lookalike.search.calibration.trials import among_themselves
from lookalike.search.items import Answer, Hit, Item, Stamp
from lookalike.search.pages import SHOWN, calibration_page, duplicates_page, search_page, sentences
from lookalike.search.pictures import as_jpeg, thumbnail
from lookalike.search.quality import Quality, Trial
from lookalike.search.repeats import Group
from tests.search.conftest import photo

BARE, FILED, KEPT = Item("bare <b>"), "figs/1.png", Item("kept", label="dates")


@pytest.fixture
def index(tmp_path):
    """Three items: without a picture, with a file, with a picture of its own."""
    made = Index.create(tmp_path / "shop.index", dim=3)
    photo("figs", 1, side=400).resize((400, 200)).save(tmp_path / "1.png")
    stamp = Stamp(0, 0, digest_of((tmp_path / "1.png").read_bytes()))
    filed = Item(FILED, str(tmp_path / "1.png"), "figs", stamp=stamp)
    made.store.put([BARE, filed, KEPT], np.eye(3, dtype=np.float32), {"kept": as_jpeg(np.asarray(photo("dates", 2)))})
    yield made
    made.close()


@pytest.fixture(scope="module")
def found():
    draw = np.random.default_rng(0)
    vectors = np.repeat(draw.standard_normal((40, 8)), 6, axis=0) + 0.4 * draw.standard_normal((240, 8))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    trials = among_themselves(vectors, [f"class {row // 6}" for row in range(240)])
    facts = {"items": 1234, "generation": 1, "date": "2026-11-17", "source": "index", "seen_in_training": True}
    compared = [
        Trial("plain search", 0.5, 0.0, (0.0, 0.0), {}, True),
        Trial("flip", 0.625, 0.125, (-0.0625, 0.25), {"1": -0.125, "3": 0.25, "all": 0.25}, False),
        Trial("the best photo", 0.5, 0.0, (0.0, 0.0), {}, True),
        Trial("the best 2 photos", 0.75, 0.25, (0.125, 0.375), {"2 or 3": 0.25, "4 to 7": 0.125}, True),
    ]
    return Calibrated(calibrate(trials, 0.8, **facts), Quality(pooled=2), compared)


def pictures(page):
    """The pictures inside a page, by what they are called."""
    tags = re.findall(r'<img src="data:image/jpeg;base64,([^"]*)" alt="([^"]*)"', page)
    return {name: Image.open(io.BytesIO(base64.b64decode(content))) for content, name in tags}


def cells(page):
    return [re.findall("<t[dh]>(.*?)</t[dh]>", row) for row in re.findall("<tr>.*?</tr>", page)]


def test_a_search_shows_the_query_and_every_hit(index):
    items = {item.id: item for item in index.store.listed()}
    hits = [Hit(items[FILED], 0.75), Hit(items["kept"], 0.5), Hit(items[BARE.id], -0.25)]
    asked = as_jpeg(np.zeros((9, 5, 3), np.uint8))
    page = search_page(index, [("one.png", [asked], Answer(hits)), ("two.png", [None], Answer([]))])
    shown = pictures(page)
    assert list(shown) == ["the query", FILED, "kept"]
    assert shown["the query"].size == (5, 9)
    assert shown[FILED].size == (256, 128)
    assert page.count("<figure>") == page.count("</figure>") == 5
    assert "bare &lt;b&gt;" in page
    assert f"{index.shown}: 3 items" in page
    assert re.findall(r'<meter min="0" max="1" value="([^"]*)">', page) == ["0.7500", "0.5000", "0.0000"]
    captions = re.findall("<figcaption><strong>(.*?)</strong>", page)
    assert captions == ["uncalibrated", "figs", "dates", "without a label", "uncalibrated"]
    assert page.index("one.png") < page.index("two.png") < page.index("Nothing in the index answers this search.")
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", page)


def test_a_verdict_comes_with_its_chance_and_meaning(index):
    said = Answer([], "sure", 0.875, meaning="Most of them are right.", match=0.9375, words="sure: figs")
    page = search_page(index, [("one.png", [None], said)])
    assert "<strong>sure: figs</strong> (match 94%, chance 88%). Most of them are right." in page
    certain = replace(said, match=1.0, chance=0.9999)  # nobody has measured more than 99%
    assert "</strong> (match 99%, chance 99%). Most" in search_page(index, [("one.png", [None], certain)])
    strange = Answer([], "unknown", 0.49, meaning="Few are.", match=0.5, words="nothing like it here")
    assert "<strong>nothing like it here</strong>. Few are." in search_page(index, [("one.png", [None], strange)])


def test_a_calibration_in_words_and_as_a_table(index, found):
    page = calibration_page(index, found)
    assert all(line.split(":")[0] in page for line in sentences(found))
    assert cells(page) == [
        ["", "labels right", "difference", "95% interval", "by number of photos", "helps"],
        ["plain search", "0.500", "+0.000", "[+0.000, +0.000]", "", ""],
        ["flip", "0.625", "+0.125", "[-0.062, +0.250]", "1: -0.125, 3: +0.250, all: +0.250", "no"],
        ["the best photo", "0.500", "+0.000", "[+0.000, +0.000]", "", ""],
        ["the best 2 photos", "0.750", "+0.250", "[+0.125, +0.375]", "2 or 3: +0.250, 4 to 7: +0.125", "yes"],
    ]
    assert "<svg" in page
    assert f"{index.shown}, 2026-11-17" in page


def test_what_calibration_says(found):
    promise, sure, unknown, measured, own, seen, on, flip = sentences(found)
    calibration = found.calibration
    assert promise.startswith("At least 80% of the answers called sure are right; ")
    assert sure.startswith(
        f"sure: answers with a chance of {calibration.sure:.3f} or more. Of these, {calibration.precision:.1%}"
    )
    assert unknown.startswith("unknown: the match is lower, or the first hits are less similar, than for at least 95%")
    assert measured.startswith(
        "Measured with 240 items of the index, each left out of its own search, of 40 classes, among 1,234 items"
    )
    assert own.startswith("This holds for photos like those in the index")
    assert "seen in training" in seen
    assert on == "Switched on: the best 2 photos."
    assert flip == "Flip did not help beyond the noise, so it stays off."


def test_what_calibration_says_where_nothing_is_sure_or_gains(found):
    calibration = replace(found.calibration, sure=None, seen_in_training=False, source="data", classes=8)
    lines = sentences(Calibrated(calibration, Quality(), found.compared))
    assert lines[0] == ("No answer is called sure: 8 classes like these cannot promise 80%; 95% takes at least 19.")
    assert lines[3:] == [
        "Flip did not help beyond the noise, so it stays off.",
        "Left off as you asked, although it would help: the best 2 photos.",
    ]
    less = [*found.compared[:3], replace(found.compared[3], kept=False)]
    pooling = "The best 2 photos did not help beyond the noise, so a thing is ranked by its best one."
    more = sentences(Calibrated(calibration, Quality(), less, absent=3))
    assert more[-1] == pooling
    assert "3 further classes of these pictures are not in the index and were always absent." in more


def test_duplicates_by_level(index):
    items = list(index.store.listed())
    many = tuple(Item(f"copy {number}", f"/gone/copy {number}") for number in range(SHOWN + 1))
    page = duplicates_page(index, [Group("look-alike", tuple(items), 0.9375), Group("same bytes", many, 1.0)])
    assert re.findall("<h2>(.*?)</h2>", page) == ["Same bytes", "Look-alike"]
    assert page.count("1 group<") == 2
    assert "similarity 0.9375" in page
    assert f"copy {SHOWN - 1}" in page
    assert f"copy {SHOWN}<" not in page
    assert pictures(page)[FILED].size == (128, 64)
    assert f"<strong>figs</strong> <small>{items[1].path}</small>" in page
    assert "No picture appears twice." in duplicates_page(index, [])


def test_a_thumbnail_is_none_where_there_is_no_picture(index, tmp_path):
    assert thumbnail(index.store, BARE) is None
    (tmp_path / "1.png").unlink()
    assert thumbnail(index.store, index.store.items([FILED])[0]) is None
    assert Image.open(io.BytesIO(thumbnail(index.store, KEPT, 20))).size == (20, 20)
