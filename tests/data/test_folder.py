"""Folders as people have them."""

import os

import pytest

from lookalike import data
from lookalike.errors import UserError


def test_classes_are_folders(pictures):
    for name in ("hen/b.JPG", "hen/a.png", "owl night/ü 1.jpeg", "owl night/.hidden.jpg", "owl night/notes.txt"):
        if name.endswith("txt"):
            pictures.write(name, ["x"])
        else:
            pictures.save(name)
    pictures.save(".thumbnails/hen/a.jpg")
    found = data.folder(pictures.root)
    assert list(found.images.paths) == ["hen/a.png", "hen/b.JPG", "owl night/ü 1.jpeg"]
    assert found.label_names == ("hen", "owl night")
    assert found.labels.tolist() == [0, 0, 1]
    assert found.categories is None
    assert found.splits is None
    assert found.images.open(2).decode().shape == (3, 24, 32)


def test_nested_folders_are_categories(pictures):
    for name in ("birds/hen/a.jpg", "birds/owl/a.jpg", "cats/lynx/a.jpg", "stone/a.jpg"):
        pictures.save(name)
    found = data.folder(pictures.root)
    assert found.label_names == ("birds/hen", "birds/owl", "cats/lynx", "stone")
    assert found.category_names == ("birds", "cats")
    assert found.categories.tolist() == [0, 0, 1, -1]


def test_part_folders_are_splits_and_roles(pictures):
    for name in ("train/hen/a.jpg", "val/hen/a.jpg", "query/owl/a.jpg", "gallery/owl/a.jpg"):
        pictures.save(name)
    found = data.folder(pictures.root)
    assert found.label_names == ("hen", "owl")
    assert sorted(found.splits.tolist()) == [0, 1, 2, 2]
    assert sorted(found.roles.tolist()) == [-1, -1, 0, 1]


def test_a_class_may_be_called_test(pictures):
    for name in ("test/a.jpg", "train/a.jpg"):
        pictures.save(name)
    found = data.folder(pictures.root)
    assert found.label_names == ("test", "train")
    assert found.splits is None


def test_link_loops_end(pictures):
    pictures.save("hen/a.jpg")
    os.symlink(pictures.root, pictures.root / "hen" / "again")
    os.symlink(pictures.root / "hen" / "nowhere.jpg", pictures.root / "hen" / "broken.jpg")
    found = data.folder(pictures.root)
    assert list(found.images.paths) == ["hen/a.jpg", "hen/broken.jpg"]


def test_links_to_images_elsewhere_are_followed(pictures, tmp_path):
    file = pictures.save("hen/a.jpg")
    (tmp_path / "other" / "owl").mkdir(parents=True)
    os.symlink(file, tmp_path / "other" / "owl" / "linked.jpg")
    os.symlink(file.parent, tmp_path / "other" / "hen")
    assert data.folder(tmp_path / "other").label_names == ("hen", "owl")


def test_images_in_no_class_are_listed(pictures):
    pictures.save("hen/a.jpg")
    pictures.save("lost.jpg")
    found = data.folder(pictures.root)
    assert [(problem.path, problem.kind) for problem in found.problems] == [("lost.jpg", "no class")]


def test_what_is_no_folder_of_images_is_refused(pictures, tmp_path):
    (tmp_path / "empty").mkdir()
    for place, message in (
        (tmp_path / "none", "there is no folder"),
        (tmp_path / "empty", "no images in class folders"),
    ):
        with pytest.raises(UserError, match=message):
            data.folder(place)
    file = pictures.save("a.jpg")
    with pytest.raises(UserError, match="is a file"):
        data.folder(file)
    with pytest.raises(UserError, match="1 lie in no class folder"):
        data.folder(pictures.root)
