"""Items that are there more than once: by bytes, by picture, by vector, each level without what a stricter one says."""

import shutil
from contextlib import closing

import numpy as np
import pytest
from PIL import ImageOps

from lookalike.search import Index
from lookalike.search.items import Item, Stamp
from lookalike.search.repeats import NEIGHBOURS, Group, look_alikes, repeats, same_bytes, same_picture, without
from tests.search.conftest import photo


@pytest.fixture
def make(tmp_path):
    opened = []

    def made(items, vectors):
        index = Index.create(tmp_path / f"index{len(opened)}", dim=np.shape(vectors)[1])
        opened.append(index)
        vectors = np.array(vectors, np.float32)
        index.store.put(items, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
        return index.store

    yield made
    for index in opened:
        index.close()


def ids(groups):
    return [[item.id for item in group.items] for group in groups]


def at_angles(*degrees):
    return [[np.cos(np.radians(angle)), np.sin(np.radians(angle))] for angle in degrees]


def test_pairs_above_the_similarity_are_connected_to_groups(make):
    store = make([Item(name) for name in "abcdef"], at_angles(0, 10, 20, 90, 95, 180))
    told = []
    groups = look_alikes(store, np.cos(np.radians(11)), progress=lambda done, total: told.append((done, total)))
    assert ids(groups) == [["d", "e"], ["a", "b", "c"]]  # the most similar first
    assert [group.similarity for group in groups] == pytest.approx(np.cos(np.radians([5, 10])), abs=1e-6)
    assert {group.level for group in groups} == {"look-alike"}
    assert told == [(6, 6)]
    assert look_alikes(store, 0.9999) == []


def test_an_item_with_many_neighbours_is_found_by_each_of_them(make):
    crowd = [Item("a"), *(Item(f"b{number:02d}") for number in range(NEIGHBOURS + 5)), Item("z")]
    store = make(crowd, at_angles(0, *np.linspace(-1, 0.1, NEIGHBOURS + 5), 3))
    assert ids(look_alikes(store, np.cos(np.radians(3.05)))) == [sorted(item.id for item in crowd)]


def test_pairs_across_two_indexes(make):
    one = make([Item("a", root="/one"), Item("b", root="/one")], at_angles(0, 1))
    other = make([Item("a", root="/other"), Item("c", root="/other")], at_angles(50, 90))
    assert look_alikes(one, 0.99, other) == []
    (group,) = look_alikes(one, 0.6, other)
    assert [(item.root, item.id) for item in group.items] == [("/one", "a"), ("/one", "b"), ("/other", "a")]


def test_the_same_bytes_under_several_names(make):
    stamps = {"a": "x", "b": "y", "c": "x"}
    items = [Item(name, stamp=Stamp(1, 1, digest)) for name, digest in stamps.items()] + [Item("d"), Item("e")]
    store = make(items, np.eye(5))
    assert same_bytes([store]) == [Group("same bytes", (items[0], items[2]), 1.0)]
    assert ids(same_bytes([store, store])) == [["a", "c", "a", "c"], ["b", "b"]]


def test_a_stricter_level_says_it_first(make, tmp_path):
    photo("figs", 1, side=120).save(tmp_path / "a.png")
    shutil.copy(tmp_path / "a.png", tmp_path / "b.png")
    photo("figs", 1, side=120).resize((90, 90)).save(tmp_path / "c.png")
    photo("dates", 2, side=120).save(tmp_path / "d.png")
    digests = {"a": "x", "b": "x", "c": "y", "d": "z"}
    items = [Item(name, str(tmp_path / f"{name}.png"), stamp=Stamp(1, 1, digest)) for name, digest in digests.items()]
    store = make([*items, Item("e")], at_angles(0, 0, 5, 10, 90))
    levels = {group.level: [item.id for item in group.items] for group in repeats(store, 0.98)}
    assert levels == {"same bytes": ["a", "b"], "same picture": ["a", "b", "c"], "look-alike": ["a", "b", "c", "d"]}
    assert {group.level for group in repeats(store, 0.999)} == {"same bytes", "same picture"}


def test_mirror_images_are_a_level_of_their_own(make, tmp_path):
    picture = photo("figs", 1, side=120)
    picture.paste((200, 30, 30), (70, 5, 115, 40))  # so that it is not its own mirror image
    picture.save(tmp_path / "a.png")
    picture.convert("RGB").save(tmp_path / "b.jpg", quality=60)
    ImageOps.mirror(picture).resize((80, 80)).convert("RGB").save(tmp_path / "c.jpg")
    photo("dates", 2, side=120).save(tmp_path / "d.png")
    items = [Item(name[0], str(tmp_path / name)) for name in ("a.png", "b.jpg", "c.jpg", "d.png")]
    levels = {group.level: [item.id for item in group.items] for group in repeats(make(items, np.eye(4)), 0.9)}
    assert levels == {"same picture": ["a", "b"], "mirror image": ["a", "b", "c"]}
    straight = [items[0], items[3]]
    assert repeats(make(straight, np.eye(2)), 0.9) == []


def test_one_picture_alone_repeats_nothing(make, tmp_path):
    photo("figs", 1).save(tmp_path / "a.png")
    assert same_picture([make([Item("a", str(tmp_path / "a.png")), Item("b")], np.eye(2))]) == ([], [])


def test_only_groups_that_join_more_are_left():
    a, b, c = (Item(name) for name in "abc")
    known = [Group("same bytes", (a, b), 1.0)]
    same, more = Group("look-alike", (b, a), 0.9), Group("look-alike", (a, b, c), 0.9)
    assert without([same, more], known) == [more]
    assert without([same], []) == [same]


def test_an_empty_index_repeats_nothing(tmp_path):
    with closing(Index.create(tmp_path / "index", dim=2)) as index:
        assert repeats(index.store, 0.9) == []
