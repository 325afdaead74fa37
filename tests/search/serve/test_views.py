"""Items and the whole index as the API shows them."""

import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

from lookalike.search import Index
from lookalike.search.calibration.thresholds import Calibration
from lookalike.search.items import Answer, Hit, Item
from lookalike.search.serve import views
from lookalike.search.serve.refusals import Refusal
from lookalike.search.serve.settings import Settings
from lookalike.search.serve.views import Overview, Thumbnails, answer_form, hit_form, item_form
from tests.search.around import around
from tests.search.conftest import CLASSES, photo


@pytest.fixture
def index(shop):
    opened = Index.open(shop)
    yield opened
    opened.close()


@pytest.fixture
def overview(index, shop):
    return Overview(index, Settings(shop, read_only=True, body=7, pixels=8, hits=9))


def test_an_item_is_shown_without_the_folders_of_its_file():
    item = Item("a/b c", "/home/me/secret/x.png", "figs", {"price": 3}, added=0.0)
    form = item_form(item)
    assert (form.id, form.path, form.label, form.columns) == ("a/b c", "x.png", "figs", {"price": 3})
    assert form.thumbnail == "/v1/items/a%2Fb%20c/thumbnail"
    assert form.added == "1970-01-01T00:00:00+00:00"
    odd = item_form(Item("a", os.fsdecode(b"/home/caf\xe9\n.png")))  # JSON holds UTF-8 only
    assert odd.path == "caf\\xe9\\n.png"
    assert odd.model_dump_json()
    bare = item_form(Item("a"))
    assert (bare.path, bare.added) == (None, None)
    hit = hit_form(Hit(item, 0.5))
    assert (hit.item, hit.similarity) == (form, 0.5)


@pytest.mark.parametrize(("verdict", "shown"), [("sure", "sure"), ("uncalibrated", None)])
def test_an_answer_is_shown_with_its_verdict(verdict, shown):
    answer = Answer([Hit(Item("a"), 0.25)], verdict, missing=("db2",), label="figs", meaning="It is.")
    form = answer_form(answer, 7, {"decode": 1.23456, "network": 0, "search": 2}, "digest")
    assert (form.verdict, form.label, form.meaning, form.items) == (shown, "figs", "It is.", 7)
    assert (form.query, form.missing, form.milliseconds.decode) == ("digest", ["db2"], 1.235)
    assert [hit.item.id for hit in form.hits] == ["a"]


def test_the_index_as_a_whole(overview):
    form = overview.form()
    assert (form.name, form.items, form.classes, form.read_only, form.feedback) == ("shop", 36, 6, True, 0)
    assert (form.limits.body, form.limits.pixels, form.limits.k) == (7, 8, 9)
    assert [(label.label, label.items, label.example.label) for label in form.labels] == [
        (name, 6, name) for name in CLASSES
    ]
    assert form.sample == form.labels[0].example
    assert len(form.newest) == views.NEWEST
    brand, price = sorted(form.columns, key=lambda column: column.name)
    assert (brand.name, brand.type, [value.value for value in brand.values]) == ("brand", "text", ["even", "odd"])
    assert (price.name, price.type, price.values, price.least, price.most) == ("price", "number", [], 0, 50)
    assert form.calibration is None


def test_classes_are_found_by_a_part_of_their_names_in_natural_order(tmp_path):
    index = Index.create(tmp_path / "index", dim=2)
    names = [f"Mug {number}" for number in range(1, 61)] + ["mug", "bowl", "bowl"]
    vectors = np.ones((len(names), 2), np.float32)
    index.store.put([Item(str(place), label=name) for place, name in enumerate(names)], vectors)
    overview = Overview(index, Settings(tmp_path / "index"))
    assert [label.label for label in overview.form().labels[:4]] == ["bowl", "mug", "Mug 1", "Mug 2"]
    assert overview.form().sample.label == "bowl"  # the largest
    assert len(overview.form().labels) == views.VALUES
    assert [label.label for label in overview.labels("", 60, 9).labels] == ["Mug 59", "Mug 60"]
    found = overview.labels("mug 1", 1, 2)
    assert (found.found, [label.label for label in found.labels]) == (11, ["Mug 10", "Mug 11"])
    assert [label.label for label in overview.labels("Mug 60", 0, 9).labels] == ["Mug 60"]
    assert overview.labels("Mug 1", 0, 1).labels[0].example.label == "Mug 1"
    assert overview.labels("no such name", 0, 9).found == 0
    index.store.put(
        [Item("long", label="9" * 5000), Item("short", label="10")], vectors[:2]
    )  # Python reads no such number
    assert [label.label[:9] for label in overview.form().labels[:3]] == ["10", "9" * 9, "bowl"]


def test_without_labels_the_newest_item_is_the_sample(tmp_path):
    index = Index.create(tmp_path / "index", dim=2)
    index.store.put([Item("old"), Item("new")], np.eye(2, dtype=np.float32))
    form = Overview(index, Settings(tmp_path / "index")).form()
    assert (form.labels, form.sample.id) == ([], "new")


def test_an_overview_is_made_again_after_a_change(index, shop):
    clock, store = [100.0], index.store
    overview = Overview(index, Settings(shop), lambda: clock[0])
    first = overview.form()
    assert overview.form() is first
    store.remove(["table/figs0.png"])

    def slowly(*what):
        clock[0] += 0.5  # it is asked twice
        return store.summary(*what)

    index.store = around(store, summary=slowly)
    second = overview.form()
    assert second.items == 35
    store.remove(["table/figs1.png"])
    clock[0] += views.PATIENCE - 0.5
    assert overview.form() is second  # it took a second, so it may be twenty seconds old
    clock[0] += 0.5
    assert overview.form().items == 34


def test_what_calibration_promises_is_said(index, shop):
    calibration = Calibration(0.8, 0.6, 0.4, 0.9, (0.8, 1.0), 0.75, 6, 24, 36, 1, "today", "index")

    def shown(calibration):
        index.store.documents.write("calibration", json.dumps(calibration.as_json()))
        return Overview(index, Settings(shop)).form().calibration

    form = shown(calibration)
    assert (form.precision, form.coverage, form.date, form.stale) == (0.8, 0.75, "today", False)
    promise = (
        "At least 80% of the answers called sure are right (6 classes can promise at most 85%; 95% takes at least 19); "
        "they cover 75% of the queries whose class is in the index."
    )
    assert form.meaning == promise
    grown = shown(replace(calibration, items=10))
    assert grown.stale
    assert grown.meaning.startswith(f"{promise} Calibrate again: the index has grown from 10 to 36 items")
    none = shown(replace(calibration, sure=None))
    assert none.meaning.startswith("No answer is called sure: 6 classes like these cannot promise 80%")


def test_thumbnails_stay_in_memory_up_to_a_size(tmp_path, model):
    """One that is in memory is there after its file has gone."""
    (tmp_path / "photos").mkdir()
    for name in ("first", "second", "third"):
        photo("figs", len(name)).save(tmp_path / "photos" / f"{name}.png")
    index = Index.create(tmp_path / "index", model)
    index.add(tmp_path / "photos")
    first, second, third = (item.id for item in index.store.listed())
    sizes = [len(Thumbnails(index).get(name)) for name in (first, second, third)]
    large, exact, small = (Thumbnails(index, kept) for kept in (sum(sizes), sizes[0] + sizes[1], max(sizes[:2])))
    for name in (first, second, third):
        assert large.get(name).startswith(b"\xff\xd8")
    for thumbnails in (exact, small):
        for name in (first, second):
            thumbnails.get(name)
    shutil.rmtree(tmp_path / "photos")
    assert all(large.get(name) for name in (first, second, third))
    assert all(exact.get(name) for name in (first, second))
    assert (small.get(first) is None, small.get(second) is None) == (True, False)  # the older one has gone
    with pytest.raises(Refusal, match="There is no item 'nothing'"):
        small.get("nothing")
    index.close()
