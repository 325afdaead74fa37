"""Marks become a table that fit and calibrate read."""

import csv
from io import BytesIO

import pytest

from lookalike import data
from lookalike.search import Index
from lookalike.search.items import Item, Mark
from tests.cli.processes import Lookalike
from tests.search.conftest import CLASSES, photo
from tests.search.serve.conftest import encoded


def mark(store, query, item, right, label="figs", number=0):
    """An uploaded query, with its picture, marked with an item."""
    store.marks.add(Mark(query, None, item, right), encoded(label, number))


def table(place):
    with place.open() as file:
        return list(csv.DictReader(file))


@pytest.fixture
def store(shop):
    return Index.open(shop).store


def test_marked_queries_get_the_class_of_their_hits(store, shop, tmp_path):
    for number, label in enumerate(CLASSES):
        for query in range(3):
            mark(store, f"{label}{query}", f"table/{label}{query}.png", True, label, 200 + query)
        mark(store, f"{label}0", f"table/{CLASSES[number - 1]}0.png", False)
    done = Lookalike(tmp_path)("labels", shop, "--out", tmp_path / "marked.csv")
    assert done.code == 0, done.error
    assert "36 images of 6 classes" in done.out
    rows = table(tmp_path / "marked.csv")
    assert {row["label"] for row in rows} == set(CLASSES)
    assert len([row for row in rows if "marked.pictures" in row["path"]]) == 18
    pairs = table(tmp_path / "marked.pairs.csv")
    assert [pair["same"] for pair in pairs].count("no") == 6
    assert len(data.load(str(tmp_path / "marked.pairs.csv"))) == 36  # a table of judged pairs, which fit takes too
    assert len(pairs) == 24
    dataset = data.load(str(tmp_path / "marked.csv"))
    assert (len(dataset), len(dataset.label_names)) == (36, 6)
    calibrated = Lookalike(tmp_path)("calibrate", shop, tmp_path / "marked.csv", "--precision", "0.8")
    assert calibrated.code == 0, calibrated.error


def test_classes_without_a_name_are_joined(tmp_path, model):
    from lookalike.search.feedback import labels

    file = BytesIO()
    photo("figs", 0).save(file, "PNG")
    index = Index.create(tmp_path / "bare.index", model)
    for name in ("one/../x", "two"):
        index.store.put([Item(name)], index.vectors_of([photo("figs", 0)]), {name: file.getvalue()})
    mark(index.store, "a", "one/../x", True)
    mark(index.store, "b", "one/../x", True)
    mark(index.store, "c", "two", True)
    index.store.marks.add(Mark("item:two", "two", "one/../x", False))
    result = labels(index.store, tmp_path / "pictures")
    assert sorted(label for _, label in result.rows) == ["marked 1"] * 3 + ["marked 2"] * 2
    assert all(path.parent == (tmp_path / "pictures").resolve() and path.is_file() for path, _ in result.rows)
    assert [pair.right for pair in result.pairs] == [True, True, True, False]


def test_contradictions_and_lost_pictures_are_left_out(store, tmp_path):
    from lookalike.search.feedback import labels

    mark(store, "two classes", "table/figs0.png", True)
    mark(store, "two classes", "table/apple0.png", True)
    mark(store, "denied", "table/bread0.png", True)
    mark(store, "denied", "table/bread1.png", False)
    store.marks.add(Mark("no picture", None, "table/dates0.png", True))
    mark(store, "gone", "table/dates1.png", True)
    store.remove(["table/dates1.png"])
    mark(store, "good", "table/cheese0.png", True)
    result = labels(store, tmp_path / "pictures")
    assert {label for _, label in result.rows} == {"cheese", "dates"}
    assert [line.partition(": ")[2] for line in result.contradicted] == [
        "marked right for apple and for figs",
        "marked right for bread, and wrong for 'table/bread1.png' of it",
    ]
    assert result.lost == 2


def test_a_query_that_is_only_wrong_says_what_it_is_not(store, shop, tmp_path):
    mark(store, "odd", "table/figs0.png", False)
    mark(store, "odd", "table/figs1.png", False)
    mark(store, "odd", "table/dates0.png", False)
    store.marks.add(Mark("item:x", "table/apple0.png", "table/bread0.png", False))  # both have a label: nothing new
    done = Lookalike(tmp_path)("labels", shop, "--out", tmp_path / "marked.csv")
    assert "3 images of 2 classes" in done.out
    assert "1 more with only ruled-out labels" in done.out
    (odd,) = [row for row in table(tmp_path / "marked.csv") if not row["label"]]
    assert odd["not_label"] == "dates|figs"
    marked = data.load(str(tmp_path / "marked.csv"))
    assert (marked.present, int(marked.undecided().sum())) == (2, 1)
    pairs = marked.judged_pairs
    own = int(marked.labels[marked.undecided()])
    assert pairs.opposes(pairs)[own].tolist() == [name in ("dates", "figs") for name in marked.label_names]


def test_nothing_marked_is_said(shop, tmp_path):
    Lookalike(tmp_path)("labels", shop, "--out", tmp_path / "t.csv").refused("no feedback")
    Lookalike(tmp_path)("labels", shop, "--out", tmp_path / "t.txt").refused(".csv")
