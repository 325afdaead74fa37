"""Folders as people have them."""

import os
import shutil

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
    dataset = data.folder(pictures.root)
    assert list(dataset.images.paths) == ["hen/a.png", "hen/b.JPG", "owl night/ü 1.jpeg"]
    assert dataset.label_names == ("hen", "owl night")
    assert dataset.labels.tolist() == [0, 0, 1]
    assert dataset.categories is None
    assert dataset.splits is None
    assert dataset.images.open(2).decode().shape == (3, 24, 32)


def test_nested_folders_are_categories(pictures):
    for name in ("birds/hen/a.jpg", "birds/owl/a.jpg", "cats/lynx/a.jpg", "stone/a.jpg"):
        pictures.save(name)
    dataset = data.folder(pictures.root)
    assert dataset.label_names == ("birds/hen", "birds/owl", "cats/lynx", "stone")
    assert dataset.category_names == ("birds", "cats")
    assert dataset.categories.tolist() == [0, 0, 1, -1]


def test_part_folders_are_splits_and_roles(pictures):
    for name in ("train/hen/a.jpg", "val/hen/a.jpg", "query/owl/a.jpg", "gallery/owl/a.jpg"):
        pictures.save(name)
    dataset = data.folder(pictures.root)
    assert dataset.label_names == ("hen", "owl")
    assert sorted(dataset.splits.tolist()) == [0, 1, 2, 2]
    assert sorted(dataset.roles.tolist()) == [-1, -1, 0, 1]


def test_a_class_may_be_called_test(pictures):
    for name in ("test/a.jpg", "train/a.jpg"):
        pictures.save(name)
    dataset = data.folder(pictures.root)
    assert dataset.label_names == ("test", "train")
    assert dataset.splits is None


def test_link_loops_end(pictures):
    pictures.save("hen/a.jpg")
    os.symlink(pictures.root, pictures.root / "hen" / "again")
    os.symlink(pictures.root / "hen" / "nowhere.jpg", pictures.root / "hen" / "broken.jpg")
    dataset = data.folder(pictures.root)
    assert list(dataset.images.paths) == ["hen/a.jpg", "hen/broken.jpg"]


def test_links_out_of_the_folder_are_followed_only_on_request(pictures, tmp_path):
    file = pictures.save("hen/a.jpg")
    other = tmp_path / "other"
    (other / "owl").mkdir(parents=True)
    os.symlink(file, other / "owl" / "linked.jpg")
    os.symlink(file.parent, other / "hen")
    os.symlink("..", other / "loop")
    with pytest.raises(UserError, match=r"3 links lead out of it: linked_folder=.*other follows them"):
        data.folder(other)
    os.unlink(other / "loop")
    assert data.load(f"linked_folder={other}").label_names == ("hen", "owl")
    os.symlink("..", other / "loop")
    shutil.copy(file, other / "owl" / "own.jpg")
    os.symlink("own.jpg", other / "owl" / "within.jpg")
    os.symlink("owl", other / "again")
    dataset = data.load(other)
    assert {os.path.basename(path) for path in dataset.images.paths} == {"own.jpg", "within.jpg"}
    assert [problem.path for problem in dataset.problems if problem.kind == "link"] == ["hen", "loop", "owl/linked.jpg"]


def test_images_in_no_class_are_listed(pictures):
    pictures.save("hen/a.jpg")
    pictures.save("lost.jpg")
    dataset = data.folder(pictures.root)
    assert [(problem.path, problem.kind) for problem in dataset.problems] == [("lost.jpg", "no class")]


def test_a_place_without_images_is_refused(pictures, tmp_path):
    (tmp_path / "empty").mkdir()
    for place, message in (
        (tmp_path / "none", "there is no folder"),
        (tmp_path / "empty", "there are no images in class folders"),
    ):
        with pytest.raises(UserError, match=message):
            data.folder(place)
    file = pictures.save("a.jpg")
    with pytest.raises(UserError, match="is a file"):
        data.folder(file)
    with pytest.raises(UserError, match="1 are in no class folder"):
        data.folder(pictures.root)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_closed_folders_are_listed(pictures):
    pictures.save("hen/a.jpg")
    pictures.save("owl/a.jpg").parent.chmod(0)
    dataset = data.folder(pictures.root)
    (pictures.root / "owl").chmod(0o755)
    assert [(problem.path, problem.kind) for problem in dataset.problems] == [("owl", "closed folder")]


def test_photos_of_a_phone_are_not_ignored(pictures):
    """HEIC needs a plugin of Pillow; without it the audit says so, instead of finding no image."""
    pictures.save("hen/a.jpg")
    (pictures.root / "hen" / "b.HEIC").write_bytes(b"\0\0\0\x18ftypheic")
    dataset = data.folder(pictures.root)
    assert len(dataset) == 2
    assert data.audit(dataset).findings[0].kind == "not an image"


def test_a_name_is_a_dataset_and_a_path_is_a_folder(pictures, monkeypatch):
    pictures.save("glyphs/hen/a.jpg")
    monkeypatch.chdir(pictures.root)
    assert data.load("./glyphs").name == "glyphs"
    assert data.load("./glyphs").label_names == ("hen",)
    assert data.load("folder=glyphs").label_names == ("hen",)
