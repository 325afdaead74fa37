"""An index of things: photos that one column calls by the same name answer together, wherever an index is asked."""

import csv
import json

import numpy as np
import pytest

from lookalike.errors import UserError
from lookalike.search import Index
from lookalike.search.asking import Question
from lookalike.search.calibration.pooling import compare_pooling, first_things
from lookalike.search.calibration.trials import Gallery, TrialNeighbours
from lookalike.search.feedback import labels
from lookalike.search.filters import parse
from lookalike.search.items import Mark
from lookalike.search.pages import search_page
from lookalike.search.quality import Quality
from lookalike.search.repeats import look_alikes
from lookalike.search.status import describe
from lookalike.search.stores.copying import copy
from tests.search.brute import Brute, on
from tests.search.conftest import CLASSES, photo

ALONE = "figs/5.png"  # a photo that no thing is named for


def sku_of(label, number):
    return f"{label}-{number // 3}"


@pytest.fixture(scope="module")
def table(tmp_path_factory, photos):
    file = tmp_path_factory.mktemp("things") / "shop.csv"
    with file.open("w", newline="") as lines:
        rows = csv.writer(lines)
        rows.writerow(["path", "label", "sku", "price"])
        for label in CLASSES:
            for number in range(6):
                name = f"{label}/{number}.png"
                rows.writerow([photos / name, label, "" if name == ALONE else sku_of(label, number), number])
    return file


@pytest.fixture(scope="module")
def template(tmp_path_factory, table, model):
    index = Index.create(tmp_path_factory.mktemp("things") / "index", model)
    index.add(table, thing="sku")
    yield index
    index.close()


@pytest.fixture
def index(template, tmp_path):
    """One that a test may change."""
    template.store.backup(tmp_path / "copy")
    index = Index.restore(tmp_path / "index", tmp_path / "copy")
    yield index
    index.close()


def pooled(index, number):
    index.store.documents.write("quality", json.dumps(Quality(pooled=number).as_json()))


def brute_of(index):
    brute = Brute("sphere")
    for items, vectors in index.store.scan():
        brute.put(items, vectors)
    return brute


@pytest.fixture(scope="module")
def figs(template):
    """Photos that are not in it, as vectors."""
    return template.vectors_of([photo("figs", 60 + row) for row in range(3)])


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("asked", [1, 3])
def test_answers_are_things_with_the_photos_that_speak_for_them(index, figs, number, asked):
    pooled(index, number)
    brute, vectors = brute_of(index), figs[:asked]
    for where, keep in ((None, lambda _: True), ("price<4", lambda item: item.columns["price"] < 4)):
        (answer,) = index.answers([Question(list(vectors), k=5, where=parse(where))])
        found = [(hit.thing, hit.similarity, [one.id for one in hit.photos]) for hit in answer.hits]
        assert found == brute.things(vectors, 5, "sku", number, keep)
        assert all(hit.item == hit.photos[0].item for hit in answer.hits)
    assert (answer.label, answer.second) == tuple(hit.thing for hit in answer.hits[:2])


def test_photos_and_other_things_by_another_column(index, figs):
    query = figs[0]
    expected = [one for one, _ in brute_of(index).search(query, 8)]
    assert [hit.id for hit in index.search(query, 8, group="id").hits] == expected
    assert sorted(hit.thing for hit in index.search(query, group="label").hits) == sorted(CLASSES)
    names = [hit.thing for hit in index.search(query, 50).hits]
    assert len(names) == 13
    assert names.count(None) == 1  # the photo without a name, a thing of its own
    many = index.answers([Question([query], k=3)] * 2)
    assert [[hit.thing for hit in answer.hits] for answer in many] == [names[:3]] * 2


def test_a_thing_changes_with_its_photos_at_once(index, figs):
    query = figs[0]
    pooled(index, 2)
    (first,) = index.search(query, 1).hits
    index.store.remove([one.id for one in first.photos])
    after = index.search(query, 5).hits
    assert first.thing not in [hit.thing for hit in after] or after[0].similarity < first.similarity
    index.store.put([one.item for one in first.photos], np.stack([query, query]))
    (again,) = index.search(query, 1).hits
    assert (again.thing, again.similarity) == (first.thing, pytest.approx(1))


def test_things_are_told_by_a_column_that_there_is(index, table, tmp_path, model):
    with pytest.raises(UserError, match="unknown column of things 'sk': did you mean 'sku'"):
        index.add(table, thing="sk")
    with pytest.raises(UserError, match="unknown column of things 'path'"):
        index.have_things("path")
    assert index.thing == "sku"
    new = Index.create(tmp_path / "new", model)
    with pytest.raises(UserError, match="unknown column of things 'brand'"):
        new.add(table, thing="brand")
    assert (len(new), new.thing) == (0, None)  # refused before any photo is embedded
    new.close()


def listed_as(file, photos, names, column="sku"):
    rows = [f"{photos / CLASSES[number]}/0.png,{name}" for number, name in enumerate(names)]
    file.write_text("\n".join([f"path,{column}", *rows]))
    return file


@pytest.fixture
def numbered(tmp_path, photos, model):
    """Articles whose names look like numbers."""
    index = Index.create(tmp_path / "numbered", model)
    index.add(listed_as(tmp_path / "shop.csv", photos, ["12.10", "12.1"]), thing="sku")
    yield index
    index.close()


def test_names_of_things_are_kept_as_they_are_written(numbered, figs, photos, tmp_path):
    def names():
        return sorted(hit.thing for hit in numbered.search(figs[0], 9).hits)

    assert names() == ["12.1", "12.10"]
    more = listed_as(tmp_path / "more.csv", photos, ["12.10", "12.1", "7.0"])
    assert str(numbered.add(more)) == "1 added, 2 changed, 0 unchanged"  # of another table
    assert str(numbered.add(more)) == "0 added, 0 changed, 3 unchanged"
    assert names() == ["12.1", "12.10", "7.0"]
    for where, expected in (("sku=12.10", "12.10"), ("sku=12.1", "12.1"), ("sku=7.0", "7.0")):
        assert [hit.thing for hit in numbered.search(figs[0], where=where).hits] == [expected]
    numbered.add(listed_as(tmp_path / "prices.csv", photos, ["1.50", "20"], "price"))
    for where in ("price=1.5", "price=1.50", "price<20.00"):
        assert numbered.store.count(parse(where)) == 1


def test_fractions_name_no_things(tmp_path, photos, model, figs):
    """In a column that was made of numbers before it named things."""
    index = Index.create(tmp_path / "index", model)
    articles = listed_as(tmp_path / "articles.csv", photos, ["12", "13"])
    index.add(articles)
    index.add(articles, thing="sku")
    assert sorted(hit.thing for hit in index.search(figs[0], 9).hits) == [12, 13]
    assert describe(index)["things"].startswith("2 things by 'sku'")
    with pytest.raises(UserError, match=r"so 12\.1 names no thing: make an index whose first photos"):
        index.add(listed_as(tmp_path / "fractions.csv", photos, ["12.10", "13"]))
    index.have_things("id")
    index.add(listed_as(tmp_path / "fractions.csv", photos, ["12.10", "13"]))
    with pytest.raises(UserError, match=r"so 12\.1 names no thing"):
        index.have_things("sku")
    assert index.thing is None
    index.close()


def test_chances_are_about_things(index, figs):
    assert index.calibration is None
    result = index.calibrate()
    assert result.calibration.classes == 12
    assert [trial.name for trial in result.compared] == ["the best photo", "the best 2 photos"]
    assert list(result.compared[1].by_size) == ["2 or 3"]
    answer = index.search(figs[0], 3)
    assert answer.label.startswith("figs-")
    assert answer.chance is not None
    index.have_things("label")  # what was measured was about something else
    assert index.calibration is None
    assert index.search(figs[0], 3).label == "figs"


def test_photos_answer_again(index, figs):
    photos = index.search(figs[0], 8, group="id").hits
    index.have_things("label")
    index.calibrate()
    index.have_things("id")
    assert index.thing is None
    assert index.search(figs[0], 8).hits == photos
    assert index.calibration is not None, "it was about labels, and still is"
    index.have_things("sku")
    assert index.calibration is None


def test_the_first_thing_by_hand():
    """Among the hits of random queries, beside a loop; some ask without themselves."""
    draw = np.random.default_rng(3)
    classes = draw.integers(0, 6, 40)
    gallery = Gallery(classes, lambda rows: np.zeros((len(rows), 2), np.float32), "sphere")
    places = np.stack([draw.permutation(40)[:9] for _ in range(30)])
    similarities = -np.sort(-draw.random((30, 9)), axis=1)
    itself = np.where(np.arange(30) % 2, places[:, 2], -1)
    similarities[np.arange(30) % 2 == 1, 2] = -np.inf
    near = TrialNeighbours(similarities, places, np.where(itself >= 0, classes[itself], 0), itself)
    for pooled_photos in (1, 2):
        expected = []
        for row in range(30):
            scores = {}
            hits = [(s, classes[p]) for s, p in zip(similarities[row], places[row], strict=True) if np.isfinite(s)]
            for name in {name for _, name in hits}:
                size = min(
                    pooled_photos, int((classes == name).sum() - (itself[row] >= 0 and near.classes[row] == name))
                )
                best = [s for s, own in hits if own == name][:size]
                scores[name] = np.mean(best + [hits[-1][0]] * (size - len(best)))
            expected.append(max(scores, key=scores.get))
        assert first_things(near, gallery, np.arange(30), pooled_photos).tolist() == expected


@pytest.mark.parametrize("noisy", [False, True])
def test_two_photos_speak_where_that_gains(noisy):
    """Things around centres: where photos are far from these, a single one is a stroke of luck."""
    draw = np.random.default_rng(0)
    centres = draw.standard_normal((40, 12))
    vectors = on("sphere", np.repeat(centres, 6, 0) + (0.8 if noisy else 0.01) * draw.standard_normal((240, 12)))
    classes, everyone = np.repeat(np.arange(40), 6), np.arange(240)
    scores = (vectors @ vectors.T).astype(np.float64) - 9 * np.eye(240)
    places = np.argsort(-scores, axis=1)[:, :100]
    near = TrialNeighbours(np.take_along_axis(scores, places, 1), places, classes, everyone)
    gallery = Gallery(classes, lambda rows: vectors[rows], "sphere")
    best, two = compare_pooling(near, gallery)
    assert two.recall - best.recall == pytest.approx(two.difference)
    assert two.kept is noisy
    alone = TrialNeighbours(near.similarities, places, classes * 0 - 1, everyone * 0 - 1)
    assert compare_pooling(alone, gallery) == []  # strangers only


def test_labels_of_pictures_are_things(template, held_out):
    rows = template.classify(held_out / "figs")
    assert all(row.label.startswith("figs-") and row.similarity > 0.5 for row in rows)


def test_a_mark_is_about_a_thing(index, figs, tmp_path):
    (first,) = index.search(figs[0], 1).hits
    index.store.marks.add(Mark("q", None, first.id, True), b"picture")
    assert {label for _, label in labels(index.store, tmp_path / "pictures").rows} == {first.thing}


def test_photos_of_one_thing_are_no_look_alikes(index):
    ids = [item.id for item in index.store.listed() if item.columns.get("sku") in ("figs-0", "dates-0")]
    index.store.remove([item.id for item in index.store.listed() if item.id not in ids])
    one, *rest = index.store.items(ids)
    index.store.put([one, *rest], np.repeat(np.eye(1, 16, dtype=np.float32), 6, 0))
    (group,) = look_alikes(index.store, 0.99)  # the photos of two things, all of which are alike
    assert len(group.items) == 6
    index.store.remove([item.id for item in group.items if item.columns["sku"] == "figs-0"])
    assert look_alikes(index.store, 0.99) == []
    index.store.documents.write("thing", None)
    assert len(look_alikes(index.store, 0.99)) == 1


def test_status_and_a_copy_know_things(index, figs, tmp_path, model):
    things = "12 things by 'sku'; 1 photo belongs to none; each is ranked by its best photo"
    assert describe(index)["things"] == things
    pooled(index, 2)
    index.store.remove([item.id for item in index.store.listed(parse({"sku": None}))])
    assert describe(index)["things"] == "12 things by 'sku'; each is ranked by its best 2 photos"
    assert "bytes in index.sqlite" in describe(index)["per photo"]
    other = Index.create(tmp_path / "other", model)
    assert "things" not in {name for name, value in describe(other).items() if value}
    copy(index.store, other.store)
    assert other.search(figs[0], 3) == index.search(figs[0], 3)
    other.close()


def test_the_page_shows_things(index, figs):
    pooled(index, 2)
    answer = index.search(figs[0], 2)
    page = search_page(index, [("query", [None], answer)])
    assert all(str(hit.thing) in page for hit in answer.hits)
    assert page.count("data:image/jpeg") == sum(len(hit.photos) for hit in answer.hits)
