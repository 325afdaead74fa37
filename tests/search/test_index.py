"""An index as a user sees it: add, change, remove, search, another model."""

import os
import shutil
from contextlib import closing
from weakref import ref

import numpy as np
import pytest
from PIL import Image

from lookalike.data import arrays
from lookalike.data.images.decode import Encoded
from lookalike.errors import UserError
from lookalike.models import Architecture, Model, backends
from lookalike.search import Index
from lookalike.search.adding import generation
from lookalike.search.adding.generation import renew
from lookalike.search.adding.update import READERS
from lookalike.search.items import Item
from lookalike.search.stores.places import model_folder, shown
from tests.search.conftest import photo


@pytest.fixture
def index(new_place, model, photos):
    made = Index.create(new_place(), model)
    made.add(photos)
    yield made
    made.close()


def test_a_photo_finds_its_class(index, held_out):
    answer = index.search(held_out / "bread" / "100.png", k=5)
    assert [hit.label for hit in answer.hits] == ["bread"] * 5
    assert answer.verdict == "uncalibrated"
    assert answer.hits[0].similarity >= answer.hits[1].similarity
    assert answer.hits[0].id == f"photos/bread/{answer.hits[0].path[-5:]}"


def test_every_kind_of_query_gives_the_same_vector(index, held_out):
    file = held_out / "figs" / "101.png"
    image = Image.open(file)
    array = np.asarray(image.convert("RGB"))
    vector = index.vectors_of([file])[0]
    expected = [(hit.id, hit.similarity) for hit in index.search(file).hits]
    for query in (str(file), image, array, file.read_bytes()):
        assert [(hit.id, hit.similarity) for hit in index.search(query).hits] == expected
    assert [hit.id for hit in index.search(vector).hits] == [one for one, _ in expected]


def test_more_like_this_leaves_the_item_itself_out(index):
    answer = index.search("photos/dates/3.png", k=4)
    assert "photos/dates/3.png" not in [hit.id for hit in answer.hits]
    assert [hit.label for hit in answer.hits] == ["dates"] * 4


def test_search_inside_a_box(index, tmp_path):
    both = Image.new("RGB", (80, 40))
    both.paste(photo("apple", 200), (0, 0))
    both.paste(photo("cheese", 201), (40, 0))
    both.save(tmp_path / "both.png")
    assert index.search(tmp_path / "both.png", k=1, box=(0, 0, 40, 40)).hits[0].label == "apple"
    assert index.search(tmp_path / "both.png", k=1, box=(40, 0, 40, 40)).hits[0].label == "cheese"
    with pytest.raises(UserError, match=r"the box 90,0,10,10 lies outside the picture of 80 × 40"):
        index.search(tmp_path / "both.png", box=(90, 0, 10, 10))
    with pytest.raises(UserError, match=r"a box is a part of one picture"):
        index.search(tmp_path / "both.png", box=(0, 0, 40, 40), like=[tmp_path / "both.png"])


def test_examples_for_and_against(index):
    answer = index.search(like=["photos/apple/0.png", "photos/apple/1.png"], unlike=["photos/bread/0.png"], k=3)
    assert {hit.label for hit in answer.hits} == {"apple"}
    assert not {"photos/apple/0.png", "photos/apple/1.png"} & {hit.id for hit in answer.hits}


def test_only_what_changed_is_embedded(index, photos, tmp_path, monkeypatch):
    root = tmp_path / "copy"
    shutil.copytree(photos, root)
    first = index.add(root)
    assert (first.added, first.unchanged) == (36, 0)
    os.utime(root / "apple" / "0.png", (1, 1))  # another time, the same content
    photo("apple", 900).save(root / "apple" / "1.png")
    photo("figs", 901).save(root / "figs" / "new.png")
    calls = []
    encode = Model.encode_inputs

    def counted(self, *given, **settings):
        vectors = encode(self, *given, **settings)
        calls.append(len(vectors))
        return vectors

    monkeypatch.setattr(Model, "encode_inputs", counted)
    update = index.add(root)
    assert (update.added, update.changed, update.unchanged) == (1, 2, 34)
    assert sum(calls) == 2
    assert len(index) == 73


def test_nothing_is_removed_without_being_asked_to(index, photos, tmp_path):
    root = tmp_path / "copy"
    shutil.copytree(photos, root)
    index.add(root)
    (root / "apple" / "0.png").unlink()
    index.add(root)
    assert len(index) == 72
    assert index.add(root, prune_missing=True).removed == 1
    assert len(index) == 71  # and nothing of the other root
    shutil.rmtree(root)
    root.mkdir()
    with pytest.raises(UserError, match="there are no images below"):
        index.add(root, prune_missing=True)
    assert len(index) == 71


def test_two_folders_of_one_name_do_not_overwrite_each_other(index, tmp_path, held_out):
    other = tmp_path / "elsewhere" / "photos"
    shutil.copytree(held_out, other)
    for file in other.rglob("*.png"):
        file.rename(file.with_name(f"{int(file.stem) - 100}.png"))
    assert index.add(other).added == 24
    assert len(index) == 60
    assert index.add(other).unchanged == 24


def test_unreadable_files_are_listed_and_skipped(index, tmp_path):
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "broken.jpg").write_bytes(b"not a photo")
    photo("apple", 1).save(tmp_path / "odd" / "good.png")
    update = index.add(tmp_path / "odd")
    assert update.added == 1
    assert [name for name, _ in update.unreadable] == [str(tmp_path / "odd" / "broken.jpg")]


def test_hostile_names_are_data(index, tmp_path):
    root = tmp_path / "odd"
    names = [
        "'; DROP TABLE items; --.png",
        '"quoted".png',
        "<script>alert(1)</script>.png".replace("/", "∕"),
        "é" * 120 + ".png",
    ]
    for name in names:
        root.mkdir(exist_ok=True)
        photo("apple", 1).save(root / name)
    raw = os.fsencode(root) + b"/caf\xe9.png"
    photo("apple", 2).save(tmp_path / "plain.png")
    os.rename(tmp_path / "plain.png", raw)
    assert index.add(root).added == 5
    assert index.search("odd/'; DROP TABLE items; --.png", k=1).hits
    (named,) = [item for item in index.store.listed() if "caf" in item.id]
    assert named.id == r"odd/caf\xe9.png"
    assert os.path.exists(named.path)
    assert index.remove(where="label='; DROP TABLE items; --") == 0
    assert len(index) == 41


def test_columns_of_a_table_filter_and_group(new_place, tmp_path, model, photos):
    table = tmp_path / "shop.csv"
    rows = ["path,label,brand,price,code"]
    for number, file in enumerate(sorted(photos.rglob("*.png"))):
        rows.append(f"{file},{file.parent.name},{'xy'[number % 2]},{number},00{number}")
    table.write_text("\n".join(rows))
    index = Index.create(new_place(), model)
    index.add(table)
    assert index.store.columns() | {} == {**index.store.columns(), "brand": "text", "price": "number", "code": "text"}
    query = photos / "figs" / "0.png"
    assert {hit.item.columns["brand"] for hit in index.search(query, where={"brand": "x"}).hits} == {"x"}
    assert max(hit.item.columns["price"] for hit in index.search(query, where="price<20").hits) < 20
    assert len(index.search(query, k=10, where={"price": {">=": 5, "<": 9}}).hits) == 4
    assert len({hit.label for hit in index.search(query, group="label").hits}) == 6
    for where, message in (
        ("brnd=x", "unknown column 'brnd': did you mean 'brand'"),
        ("price<cheap", "'price' is a number"),
        ("no condition", "is not a condition"),
    ):
        with pytest.raises(UserError, match=message):
            index.search(query, where=where)
    index.close()


def test_images_without_files_keep_their_pictures(new_place, model):
    stack = np.stack([np.asarray(photo("apple", number)) for number in range(3)])
    index = Index.create(new_place(), model)
    assert index.add(arrays(stack, ["apple"] * 3)).added == 3
    assert index.add(arrays(stack, ["apple"] * 3)).unchanged == 3
    first = next(iter(index.store.listed()))
    assert index.store.documents.pictures([first.id]).get(first.id).startswith(b"\x89PNG")
    assert index.add(arrays(stack, ["fruit"] * 3)).changed == 3  # another label keeps vector and picture
    assert index.store.documents.pictures([first.id]).get(first.id).startswith(b"\x89PNG")
    index.close()


def test_vectors_made_elsewhere(new_place, tmp_path):
    draw = np.random.default_rng(0)
    vectors = draw.standard_normal((20, 8)).astype(np.float32)
    np.savez(
        tmp_path / "v.npz",
        embeddings=vectors,
        labels=np.array(["a", "b"] * 10),
        ids=np.arange(20),
        price=np.arange(20.0),
    )
    empty = Index.create(tmp_path / "empty.index", "none", dim=8)  # the word of the command line
    assert empty.identity.fingerprint is None
    empty.close()
    with pytest.raises(UserError, match="or none and dim for vectors made elsewhere"):
        Index.create(tmp_path / "other.index", "none")
    index = Index.for_vectors(new_place(), tmp_path / "v.npz")
    assert index.add(tmp_path / "v.npz").added == 20
    answer = index.search(vectors[3], k=1, where="price<10")
    assert (answer.hits[0].id, answer.hits[0].label) == ("3", "b")
    with pytest.raises(UserError, match="has no model: search by vector or by id"):
        index.search(np.zeros((4, 4, 3), np.uint8))
    with pytest.raises(UserError, match=r"vectors of 4 dimensions, expected 1 of 8"):
        index.search(np.ones(4, np.float32))
    index.close()


def test_another_model_is_refused_until_a_new_generation(index, held_out):
    other = Model.create(Architecture("conv4", {"channels": 3}, dim=8), seed=2)
    with pytest.raises(UserError, match="another model: use that one, or embed everything again with --new-generation"):
        index.check_model(other)
    before = index.identity
    assert renew(index, other) == []
    assert index.identity.generation == before.generation + 1
    assert index.identity.dim == 8
    assert index.model.fingerprint == other.fingerprint
    assert index.search(held_out / "bread" / "100.png", k=3).hits[0].label == "bread"


def test_large_photos_are_not_held_and_one_backend_computes_all_batches(model, photos, tmp_path, monkeypatch):
    pixels, held, opened = [], [], []
    decode, compute, backend = Encoded.decode, Model.encode_inputs, Model.backend

    def decoded(self):
        pixels.append(ref(picture := decode(self)))
        return picture

    def computed(self, batches, *given, **settings):
        def watched():
            for batch in batches:
                held.append(sum(one() is not None for one in pixels))
                yield batch

        return compute(self, watched(), *given, **settings)

    monkeypatch.setattr(Encoded, "decode", decoded)
    monkeypatch.setattr(Model, "encode_inputs", computed)
    monkeypatch.setattr(Model, "backend", lambda self, name: opened.append(name) or backend(self, name))
    monkeypatch.setattr(generation, "BATCH", 20)
    with closing(Index.create(tmp_path / "index", model)) as index:
        index.add(photos)
        for number in range(3):
            index.search(photos / "apple" / f"{number}.png", k=1)
        assert opened == ["auto"]
        renew(index, Model.create(Architecture("conv4", {"channels": 3}, dim=8), seed=2))
        assert opened == ["auto"] * 2
    assert len(pixels) == 36 + 3 + 36
    assert max(held) <= READERS


def test_a_model_that_learns_on_does_not_change_the_index(photos, tmp_path, monkeypatch):
    monkeypatch.setattr(backends, "possible", lambda: False)  # torch computes
    learning = Model.create(Architecture("conv4", {"channels": 3}, dim=16), seed=1)
    query = photos / "apple" / "0.png"
    with closing(Index.create(tmp_path / "index", learning)) as index:
        index.add(photos)
        for weights in learning.embedder.parameters():
            weights.data.abs_()
        hit = index.search(query, k=1).hits[0]
        assert (hit.id, round(hit.similarity, 5)) == ("photos/apple/0.png", 1.0)


def test_items_without_a_picture_stop_the_switch_unless_dropped(index, photos, tmp_path):
    root = tmp_path / "copy"
    shutil.copytree(photos / "apple", root)
    index.add(root)
    (root / "0.png").unlink()
    other = Model.create(Architecture("conv4", {"channels": 3}, dim=8), seed=2)
    with pytest.raises(UserError, match=r"1 items no longer have a picture, such as 'copy/0.png'"):
        renew(index, other)
    assert index.identity.generation == 1
    assert renew(index, other, drop_missing=True) == ["copy/0.png"]
    assert len(index) == 41


def test_a_lost_model_folder_is_made_again(index, held_out):
    folder = model_folder(index.place)
    shutil.rmtree(folder, ignore_errors=True)
    again = Index.open(index.place)
    assert again.search(held_out / "bread" / "100.png", k=1).hits[0].label == "bread"
    shutil.rmtree(folder)
    third = Index.open(index.place)
    assert third.model.fingerprint == index.model.fingerprint
    again.close()
    third.close()


def test_an_index_is_there_once_it_is_made(new_place):
    place = new_place()
    assert not Index.exists(place)
    with closing(Index.create(place, dim=3)) as index:
        assert index.shown == shown(place)
    assert Index.exists(place)


def test_a_closed_index_has_no_file_open(tmp_path):
    index = Index.create(tmp_path / "index", dim=3)
    assert opened_below(tmp_path)
    index.close()
    assert not opened_below(tmp_path)


def opened_below(folder):
    """What this process has open there."""
    targets = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    return [target for target in targets if target.startswith(str(folder))]


def test_nothing_is_removed_without_ids_or_a_condition(index):
    with pytest.raises(UserError, match="say what to remove: ids, or a condition"):
        index.remove()
    assert index.remove(where="label=none") == 0
    assert index.remove(["photos/figs/0.png"], where="label=dates") == 7


def test_a_file_is_a_picture_even_where_an_item_has_its_name(tmp_path):
    index = Index.create(tmp_path / "index", dim=3)
    index.store.put([Item(str(tmp_path / "a"))], np.eye(1, 3, dtype=np.float32))
    assert len(index.vectors_of([str(tmp_path / "a")])) == 1
    (tmp_path / "a").write_bytes(b"no picture")
    with pytest.raises(UserError, match="cannot be searched for"):
        index.vectors_of([str(tmp_path / "a")])
    index.close()


def test_classifying_names_the_hit_of_its_label_however_far_it_is(index, held_out):
    file = held_out / "figs" / "100.png"
    index.store.put([Item(f"bare {number}") for number in range(30)], np.tile(index.vectors_of([file]), (30, 1)))
    (row,) = index.classify(file)
    nearest = index.search(file, 1, where={"label": row.label}).hits[0]
    assert (row.label, row.similarity) == ("figs", pytest.approx(nearest.similarity))


def test_progress_of_classifying_ends_at_its_total(index, held_out):
    told = []
    assert len(index.classify(held_out / "figs", progress=lambda done, total: told.append((done, total)))) == 4
    assert told == [(number, 4) for number in range(1, 5)]


def test_passwords_are_not_shown():
    assert "secret" not in shown("postgresql://me:secret@db/shop")
    assert "me@db" in shown("postgresql://me:secret@db/shop")


def test_an_empty_index_answers_with_nothing(tmp_path, model, held_out):
    index = Index.create(tmp_path / "empty", model)
    assert index.search(held_out / "bread" / "100.png").hits == []
    with pytest.raises(UserError, match="there is no image and no item 'nowhere'"):
        index.search("nowhere")
    with pytest.raises(UserError, match="exists and is not an index"):
        Index.create(held_out, model)
    with pytest.raises(UserError, match="there is no index in"):
        Index.open(tmp_path / "missing")
    index.close()


@pytest.mark.parametrize("dim", [0, -1, 2**31, 1.5, "4"])
def test_an_index_has_a_number_of_dimensions(new_place, dim):
    place = new_place()
    with pytest.raises(UserError, match=r"vectors of 1 to [0-9,]+ dimensions, not of"):
        Index.create(place, dim=dim)
    assert not Index.exists(place)


def test_an_index_has_a_geometry(new_place):
    with pytest.raises(UserError, match=r"unknown geometry 'bal': did you mean 'ball'"):
        Index.create(new_place(), dim=3, geometry="bal")
