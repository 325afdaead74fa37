"""Why an item was found: contributions of places that add up to the very similarity that ranked it."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from lookalike.errors import UserError
from lookalike.models import Preprocessing
from lookalike.search import Index
from lookalike.search.pictures import PictureError
from tests.search.conftest import photo

HOW = Preprocessing(crop=64, resize=72)


@pytest.fixture(scope="module")
def shop(photos, model, tmp_path_factory):
    """Photos 40 pixels wide, seen at 64."""
    index = Index.create(tmp_path_factory.mktemp("index") / "shop.index", replace(model, preprocessing=HOW))
    index.add(photos)
    return index


def total(heat):
    return float(heat.values.sum())


@pytest.mark.parametrize("query", ["photo", "item", "box"])
def test_contributions_add_up_to_the_similarity_of_the_hit(shop, query):
    asked = "photos/figs/2.png" if query == "item" else photo("figs", 77)
    answer = shop.search(asked, 5, box=(4, 6, 25, 30) if query == "box" else None)
    for hit in answer.hits:
        why = answer.why(hit)
        assert why.similarity == pytest.approx(hit.similarity, abs=1e-5)
        assert total(why.query) == pytest.approx(why.similarity, abs=1e-9)
        assert total(why.hit) == pytest.approx(why.similarity, abs=1e-9)


@pytest.mark.parametrize("geometry", ["ball", "none"])
def test_other_geometries(photos, model, geometry, tmp_path):
    index = Index.create(tmp_path / "other.index", replace(model, preprocessing=HOW, geometry=geometry))
    index.add(photos / "figs")
    answer = index.search(photo("figs", 77), 2)
    for hit in answer.hits:
        assert answer.why(hit).similarity == pytest.approx(hit.similarity, abs=1e-5, rel=1e-4)


def test_a_query_with_its_mirror_image_is_explained_with_it(shop):
    picture = np.asarray(photo("bread", 77))
    shop.store.documents.write("quality", '{"flip": true}')
    try:
        answer = shop.search(picture, 3)
        without = shop.search(picture, 3, plain=True)
        whys = [shop.why(side, answer.hits[0].id) for side in (picture, picture[:, ::-1])]
        assert answer.why(answer.hits[0]).similarity == pytest.approx(answer.hits[0].similarity, abs=1e-5)
        assert without.why(without.hits[0]).similarity == pytest.approx(without.hits[0].similarity, abs=1e-5)
    finally:
        shop.store.documents.write("quality", None)
    assert answer.hits[0].similarity != pytest.approx(without.hits[0].similarity, abs=1e-5)
    np.testing.assert_allclose(whys[0].query.values, whys[1].query.values[:, ::-1], atol=1e-6)


def test_the_heat_lies_where_the_pictures_agree(model, tmp_path):
    """Two pictures share their right half only: that is where the similarity comes from, in both."""
    rng = np.random.default_rng(5)
    shared, fills = rng.integers(0, 256, (64, 32, 3)), (60, 190)
    for number, fill in enumerate(fills):
        array = np.full((64, 64, 3), fill)
        array[:, 32:] = shared
        Image.fromarray(array.astype(np.uint8)).save(tmp_path / f"{number}.png")
    index = Index.create(tmp_path / "halves.index", replace(model, preprocessing=Preprocessing(crop=64, resize=64)))
    index.add(tmp_path / "0.png")
    answer = index.search(tmp_path / "1.png", 1)
    why = answer.why(answer.hits[0])
    for heat in (why.query, why.hit):
        left, right = heat.values[:, :2].sum(), heat.values[:, 2:].sum()
        assert right > left
        assert heat.where.endswith("right")
    assert "right of the query" in why.words


def test_a_view_is_the_part_of_the_picture_that_the_network_saw(shop):
    wide = Image.new("RGB", (200, 100), "red")
    why = shop.why(wide, "photos/figs/0.png")
    assert why.query.view == pytest.approx((0.25 + 0.5 * 4 / 72, 4 / 72, 0.5 * 64 / 72, 64 / 72))
    boxed = shop.why(wide, "photos/figs/0.png", box=(100, 0, 100, 100))
    assert boxed.query.view == pytest.approx((0.5 + 0.5 * 4 / 72, 4 / 72, 0.5 * 64 / 72, 64 / 72))


def test_a_map_of_one_place_points_nowhere(photos, model, tmp_path):
    index = Index.create(tmp_path / "small.index", model)
    index.add(photos / "figs")
    answer = index.search(photo("figs", 77), 1)
    why = answer.why(answer.hits[0])
    assert why.query.values.shape == (1, 1)
    assert "whole pictures" in why.words


def test_answers_without_one_picture_do_not_say_why(shop):
    vector = shop.store.vectors(["photos/figs/0.png"])[0]
    for answer in (shop.search(vector, 1), shop.search(like=["photos/figs/0.png", "photos/figs/1.png"], k=1)):
        with pytest.raises(UserError, match="needs exactly one query picture"):
            answer.why(answer.hits[0])
    with pytest.raises(UserError, match="a vector has no picture"):
        shop.why(vector, "photos/figs/0.png")
    with pytest.raises(UserError, match="there is no item 'nothing'"):
        shop.why("photos/figs/0.png", "nothing")


def test_a_photo_that_changed_is_not_explained(model, tmp_path):
    """What it shows now is not what was ranked."""
    file = tmp_path / "photos" / "a.png"
    file.parent.mkdir()
    photo("figs", 1).save(file)
    index = Index.create(tmp_path / "one.index", replace(model, preprocessing=HOW))
    index.add(file.parent)
    answer = index.search(photo("figs", 2), 1)
    photo("apple", 1).save(file)
    with pytest.raises(PictureError, match="changed since it was indexed: index it again"):
        answer.why(answer.hits[0])
    file.unlink()
    with pytest.raises(PictureError, match="is missing"):
        answer.why(answer.hits[0])


def test_a_thing_is_explained_by_its_best_photo_and_by_each_of_them(photos, model, tmp_path):
    index = Index.create(tmp_path / "things.index", replace(model, preprocessing=HOW))
    index.add(photos, thing="label")
    index.store.documents.write("quality", '{"pooled": 2}')
    answer = index.search(photo("figs", 77), 2)
    for hit in answer.hits:
        whys = [answer.why(one) for one in hit.photos]
        assert np.mean([why.similarity for why in whys]) == pytest.approx(hit.similarity, abs=1e-5)
        assert answer.why(hit).similarity == whys[0].similarity
        assert (
            answer.why(hit).words
            == f"{whys[0].words} This is the best of the 2 photos whose mean similarity ranked it."
        )
    plain = index.search(photo("figs", 77), 1, plain=True)
    assert "best of" not in plain.why(plain.hits[0]).words


def test_a_mapped_item_is_not_explained(photos, model, tmp_path):
    """What the new model sees in its picture is not what ranked it."""
    index = Index.create(tmp_path / "mapped.index", replace(model, preprocessing=HOW))
    index.add(photos / "figs")
    items = list(index.store.listed())
    vectors = index.store.vectors([item.id for item in items])
    index.store.put([replace(items[0], mapped=True), *items[1:]], vectors)
    for query, item in ((photo("figs", 77), items[0].id), (items[0].id, items[1].id)):
        with pytest.raises(PictureError, match=f"the vector of '{items[0].id}' is mapped from"):
            index.why(query, item)
    answer = index.search(photo("figs", 77), 9)
    for hit in answer.hits:
        if hit.id != items[0].id:
            assert answer.why(hit).similarity == pytest.approx(hit.similarity, abs=1e-5)
