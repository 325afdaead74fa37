"""Shards of many workers in an index: the same items as from the images themselves, which are not embedded again."""

import shutil
from contextlib import closing

import numpy as np
import pytest

from lookalike.data import arrays, folder
from lookalike.errors import UserError
from lookalike.features import embed_shards
from lookalike.models import Architecture, Model
from lookalike.search import Index
from tests.search.conftest import photo


@pytest.fixture
def shards(tmp_path, model, photos):
    embed_shards(model, folder(photos), tmp_path / "shards", 5, backend="torch")
    return tmp_path / "shards"


@pytest.fixture
def index(tmp_path, model):
    made = Index.create(tmp_path / "shop.index", model)
    yield made
    made.close()


def items(index):
    return {item.id: item for item in index.store.listed()}


def test_shards_are_as_good_as_the_images(shards, index, photos, held_out, model, tmp_path):
    seen = []
    assert index.add(shards, progress=lambda *done: seen.append(done)).added == 36
    assert seen == [(number, 5) for number in range(1, 6)]
    direct = Index.create(tmp_path / "direct.index", model)
    direct.add(photos)
    assert items(index) == items(direct)
    query = held_out / "bread" / "100.png"
    one, other = (
        [(hit.id, round(hit.similarity, 4)) for hit in each.search(query, k=5).hits] for each in (index, direct)
    )
    assert one == other
    direct.close()


def test_images_that_workers_embedded_are_not_embedded_again(shards, index, photos):
    index.add(shards)
    with index.store.database.writing() as connection:
        connection.execute("DELETE FROM models")
    with closing(Index.open(index.place)) as again:
        with pytest.raises(UserError, match="its model"):
            again.search(photo("apple", 900))
        assert again.add(photos).unchanged == 36
        assert again.add(shards).unchanged == 36  # an interrupted load goes on quickly


def test_a_change_since_is_noticed(shards, index, photos, model, tmp_path):
    index.add(shards)
    copy = tmp_path / "copy" / "photos"
    shutil.copytree(photos, copy)
    photo("apple", 900).save(copy / "apple" / "1.png")
    embed_shards(model, folder(copy), tmp_path / "again", 2, backend="torch")
    assert index.add(tmp_path / "again").changed == 36  # other paths under the same ids
    assert items(index)["photos/apple/1.png"].path == str(copy / "apple" / "1.png")


def test_unreadable_images_are_listed(index, photos, model, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(photos, copy)
    (copy / "figs" / "2.png").write_bytes(b"no image")
    embed_shards(model, folder(copy), tmp_path / "shards", 5, backend="torch")
    update = index.add(tmp_path / "shards")
    assert (update.added, [name for name, _ in update.unreadable]) == (35, ["figs/2.png"])


def test_other_models_and_missing_shards_are_refused(shards, index, photos, tmp_path):
    other = Model.create(Architecture("conv4", {"channels": 3}, dim=16), seed=2)
    embed_shards(other, folder(photos), tmp_path / "others", 2, backend="torch")
    with pytest.raises(UserError, match="the vectors in 'others' come from another model than this index's"):
        index.add(tmp_path / "others")
    (shards / "000003.npz").unlink()
    with pytest.raises(UserError, match=r"1 of 5 shards in .* are missing: run lookalike embed"):
        index.add(shards)
    assert len(index) == 0


def test_an_index_without_a_model_and_images_without_files(model, tmp_path):
    stack = np.stack([np.asarray(photo("apple", number)) for number in range(6)])
    data = arrays(stack, ["apple"] * 6, categories=["fruit"] * 6)
    embed_shards(model, data, tmp_path / "shards", 2, backend="torch")
    index = Index.for_vectors(tmp_path / "plain.index", tmp_path / "shards")
    with pytest.raises(UserError, match="come from another model"):  # it has none
        index.add(tmp_path / "shards")
    index.close()
    own = Index.create(tmp_path / "own.index", model)
    assert own.add(tmp_path / "shards").added == 6
    assert own.search(stack[2], k=1, where={"category": "fruit"}).hits[0].id.endswith("image 2")
    own.close()
