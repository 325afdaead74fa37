"""Every official layout in miniature, read by the real loaders."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from lookalike import data
from lookalike.data.formats import cars196, cub200, inshop, omniglot, sop, vehicle_id
from lookalike.errors import UserError

REAL = Path(os.environ.get("LOOKALIKE_REAL_DATA", "no real data"))


def cub(pictures):
    kinds = {
        1: "001.Black_footed_Albatross",
        100: "100.Brown_Pelican",
        101: "101.White_Pelican",
        200: "200.Yellowthroat",
    }
    pictures.write("CUB_200_2011/classes.txt", [f"{number} {name}" for number, name in kinds.items()])
    rows = [(kind, f"{name}/bird {place}.jpg") for kind, name in kinds.items() for place in range(2)]
    for _, path in rows:
        pictures.save(f"CUB_200_2011/images/{path}")
    pictures.write("CUB_200_2011/images.txt", [f"{at} {path}" for at, (_, path) in enumerate(rows, 1)])
    pictures.write("CUB_200_2011/image_class_labels.txt", [f"{at} {kind}" for at, (kind, _) in enumerate(rows, 1)])
    return pictures.root


def cars_one(pictures):
    from scipy.io import savemat

    rows = [
        ("car_ims/000001.jpg", 1),
        ("car_ims/000002.jpg", 98),
        ("car_ims/000003.jpg", 99),
        ("car_ims/000004.jpg", 196),
    ]
    for path, _ in rows:
        pictures.save(path)
    kind = [("relative_im_path", "O"), ("bbox_x1", "O"), ("class", "O"), ("test", "O")]
    annotations = np.array([(path, 7, number, 0) for path, number in rows], dtype=kind)
    names = np.array([f"Make{number % 3} Model {number}" for number in range(1, 197)], dtype=object)
    content = {"annotations": annotations[None], "class_names": names[None]}
    savemat(pictures.root / "cars_annos.mat", content, do_compression=True)
    return pictures.root


def cars_two(pictures):
    from scipy.io import savemat

    kind = [("bbox_x1", "O"), ("class", "O"), ("fname", "O")]
    (pictures.root / "devkit").mkdir(parents=True)
    for part, file, numbers in (
        ("cars_train", "devkit/cars_train_annos.mat", [1, 99]),
        ("cars_test", "cars_test_annos_withlabels.mat", [98, 196]),
    ):
        rows = [(1.5, np.uint8(number), f"{number:05d}.jpg") for number in numbers]
        for _, _, name in rows:
            pictures.save(f"{part}/{name}")
        savemat(pictures.root / file, {"annotations": np.array(rows, dtype=kind)[None]})
    names = np.array([f"Make{number % 3} Modèle {number}" for number in range(1, 197)], dtype=object)
    savemat(pictures.root / "devkit/cars_meta.mat", {"class_names": names[None]})
    return pictures.root


def cars_mirror(pictures):
    """A folder per class, in both halves of the classification split; one class named as the mirrors can."""
    for half in ("train", "test"):
        for name in (
            "AM General Hummer SUV 2000",
            "Eagle Talon Hatchback 1998",
            "FIAT 500 Abarth 2012",
            "Ram C-V 2012",
        ):
            pictures.save(f"car_data/{half}/{name}/00001.jpg")
    return pictures.root / "car_data"


def cub_mirror(pictures):
    for name in ("001.Black_footed_Albatross", "100.Brown_Pelican", "101.White_Pelican", "200.Yellowthroat"):
        for place in range(2):
            pictures.save(f"{name}/bird {place}.jpg")
    return pictures.root


def products(pictures):
    root = "Stanford_Online_Products"
    parts = {"Ebay_train.txt": [(1, 1, 1, "bicycle"), (2, 1, 1, "bicycle")], "Ebay_test.txt": [(3, 11319, 2, "chair")]}
    for file, rows in parts.items():
        lines = [f"{image} {kind} {group} {name}_final/{image}_{kind}.JPG" for image, kind, group, name in rows]
        pictures.write(f"{root}/{file}", ["image_id class_id super_class_id path", *lines])
        for line in lines:
            pictures.save(f"{root}/{line.split()[3]}")
    return pictures.root / root


def shop(pictures):
    rows = [
        ("img/WOMEN/Dresses/id_00000002/02_1_front.jpg", "id_00000002", "train"),
        ("img/WOMEN/Dresses/id_00000003/01_1_front.jpg", "id_00000003", "query"),
        ("img/MEN/Denim/id_00000004/01_1_front.jpg", "id_00000003", "gallery"),
    ]
    for path, _, _ in rows:
        pictures.save(f"Img/{path}")
    lines = ["3", "image_name item_id evaluation_status", *("     ".join(row) for row in rows)]
    pictures.write("Eval/list_eval_partition.txt", lines)
    return pictures.root


def vehicles(pictures):
    lists = {"train_list": [("0000001", 5), ("0000002", 5)], "test_list_800": [("0000003", 9), ("0000004", 10)]}
    for name, rows in lists.items():
        pictures.write(f"train_test_split/{name}.txt", [f"{image} {vehicle}" for image, vehicle in rows])
        for image, _ in rows:
            pictures.save(f"image/{image}.jpg")
    pictures.write("attribute/model_attr.txt", ["5 17", "10 3"])
    pictures.write("attribute/color_attr.txt", ["5 1", "9 2", "10 2"])
    return pictures.root


def drawings(pictures):
    for name in ("images_background/Latin/character01/0001_01.png", "images_background/Latin/character02/0002_01.png"):
        pictures.save(name)
    pictures.save("images_evaluation/Tengwar/character01/0003_01.png")
    return pictures.root


LAYOUTS = {
    "cub200": (cub, cub200, {"train": [(2, 4)], "test": [(2, 4)]}),
    "cars196": (cars_one, cars196, {"train": [(2, 2)], "test": [(2, 2)]}),
    "cars196 devkit": (cars_two, cars196, {"train": [(2, 2)], "test": [(2, 2)]}),
    "sop": (products, sop, {"train": [(1, 2)], "test": [(1, 1)]}),
    "inshop": (shop, inshop, {"train": [(1, 1)], "test": [(1, 2)], "query": [(1, 1)], "gallery": [(1, 1)]}),
    "vehicle_id": (vehicles, vehicle_id, {"train": [(1, 2)]}),
    "omniglot": (drawings, omniglot, {"train": [(2, 2)], "test": [(1, 1)]}),
}
layouts = pytest.mark.parametrize(("build", "module", "counts"), LAYOUTS.values(), ids=LAYOUTS)


def reader(module):
    return data.MEMBERS[module.__name__.rsplit(".", 1)[1]]


@layouts
def test_a_part_of_the_data_loads_on_demand(pictures, build, module, counts):
    dataset = reader(module)(build(pictures), check_counts=False)
    for part, [(classes, images)] in counts.items():
        rows = dataset.where(role=part) if part in ("query", "gallery") else dataset.where(split=part)
        assert (rows.present, len(rows)) == (classes, images), part
    assert all(dataset.images.open(row).decode().shape == (3, 24, 32) for row in range(len(dataset)))
    assert not dataset.problems


@layouts
def test_a_wrong_count_is_refused(pictures, build, module, counts):
    del counts
    with pytest.raises(UserError, match=r"lacks|classes|drawings|cut off") as caught:
        reader(module)(build(pictures))
    assert "\n" not in str(caught.value)


@layouts
def test_missing_images_are_named(pictures, build, module, counts, monkeypatch):
    """With the miniature's own counts, all is well until a file goes."""
    if hasattr(module, "COUNTS"):
        monkeypatch.setattr(module, "COUNTS", counts)
    for name, value in (("IMAGES", 8), ("DRAWINGS", 1), ("TRAIN", [(1, 2)]), ("VEHICLES", {"small": 2})):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, value)
    root = build(pictures)
    if module is cub200:
        monkeypatch.setattr(cub200.Official, "check_ids", lambda *_: None)
    if module is vehicle_id:
        lists = root / "train_test_split"
        (lists / "test_list_800.txt").rename(lists / "test_list_2.txt")
    whole = reader(module)(root)
    lost = whole.images.path(len(whole) - 1)
    lost.unlink()
    if module is omniglot:  # it has no list: the folder is the list
        lost.parent.rmdir()
        with pytest.raises(UserError, match="test has 0 classes with 0 images instead of 1 classes with 1 images"):
            reader(module)(root)
        return
    with pytest.raises(UserError, match=f"1 of {len(whole)} listed images are missing: .*{re.escape(lost.name)}"):
        reader(module)(root)
    part = reader(module)(root, check_counts=False)
    assert len(part) == len(whole) - 1
    assert [problem.kind for problem in part.problems] == ["missing"]


@layouts
def test_no_data_says_where_to_get_it(tmp_path, build, module, counts):
    del build, counts
    for place in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(UserError, match=r"(get it from https://|search for '[\w ._]+' \().* looks like") as caught:
            reader(module)(place)
        assert "\n" not in str(caught.value)


@layouts
def test_a_folder_is_recognised(pictures, build, module, counts):
    del counts
    root = build(pictures)
    place = root / "CUB_200_2011" if module is cub200 else root
    assert data.load(place, check_counts=False).name == reader(module)(root, check_counts=False).name


def test_halves_follow_the_class_number(pictures):
    dataset = data.build("cub200", root=cub(pictures), check_counts=False)
    assert dataset.splits.tolist() == [0] * 4 + [2] * 4
    assert dataset.category_names == ("Albatross", "Pelican", "Yellowthroat")


def test_a_gap_in_a_list_is_named(pictures):
    root = cub(pictures)
    with pytest.raises(UserError, match=r"images.txt lacks 9, 10, 11 and 11,777 more of 11,788 rows"):
        data.build("cub200", root=root)


def test_cars_of_both_layouts_agree(pictures, tmp_path):
    one = data.build("cars196", root=cars_one(pictures), check_counts=False)
    pictures.root = tmp_path / "two"
    two = data.build("cars196", root=cars_two(pictures), check_counts=False)
    for dataset in (one, two):
        assert sorted(name.split()[0] for name in dataset.label_names) == ["001", "098", "099", "196"]
        assert {dataset.label_names[i][:3]: int(s) for i, s in zip(dataset.labels, dataset.splits, strict=True)} == {
            "001": 0,
            "098": 0,
            "099": 2,
            "196": 2,
        }
        assert set(dataset.category_names) <= {"Make0", "Make1", "Make2"}


def test_cars_whose_one_folder_is_missing_are_read_from_two(pictures):
    """People have `cars_annos.mat` beside cars_train, cars_test and devkit, without car_ims."""
    root = cars_one(pictures)
    cars_two(pictures)
    for file in (root / "car_ims").iterdir():
        file.unlink()
    (root / "car_ims").rmdir()
    dataset = data.build("cars196", root=root, check_counts=False)
    assert (
        sorted(dataset.images.name(row).split("/")[0] for row in range(len(dataset)))
        == ["cars_test"] * 2 + ["cars_train"] * 2
    )
    assert not dataset.problems


@pytest.mark.parametrize(("build", "name", "halves"), [(cars_mirror, "cars196", 4), (cub_mirror, "cub200", 4)])
def test_mirrors_have_a_folder_per_class(pictures, build, name, halves):
    root = build(pictures)
    for place in (root, root.parent) if name == "cars196" else (root,):
        dataset = data.load(f"{name}={place}", check_counts=False)
        assert dataset.name == name
        assert dataset.present == 4
        assert dataset.splits.tolist().count(0) == dataset.splits.tolist().count(2) == halves
        train = {dataset.label_names[row] for row in dataset.where(split="train").labels.unique().tolist()}
        assert train == set(sorted(dataset.label_names)[:2])
        assert all(dataset.images.open(row).decode().shape == (3, 24, 32) for row in range(len(dataset)))
    with pytest.raises(UserError, match="classes with 4 images instead of"):
        data.load(f"{name}={root}")


def test_damaged_mat_files_are_refused(pictures):
    root = cars_one(pictures)
    content = (root / "cars_annos.mat").read_bytes()
    for damaged in (b"", content[:100], content[:-40], b"x" * 500):
        (root / "cars_annos.mat").write_bytes(damaged)
        with pytest.raises(UserError, match=r"damaged|no MATLAB"):
            data.build("cars196", root=root)


def test_vehicles_without_a_model_have_no_category(pictures):
    dataset = data.build("vehicle_id", root=vehicles(pictures), check_counts=False)
    assert [dataset.category_names[i] if i >= 0 else None for i in dataset.categories.tolist()] == [
        "17",
        "17",
        None,
        "3",
    ]
    with pytest.raises(UserError, match="unknown test list 'smal': did you mean 'small'"):
        data.build("vehicle_id", root=pictures.root, test="smal")


def test_clothes_know_their_category(pictures):
    assert data.build("inshop", root=shop(pictures), check_counts=False).category_names == (
        "MEN/Denim",
        "WOMEN/Dresses",
    )


@pytest.mark.skipif(
    not (REAL / "CUB_200_2011").is_dir(), reason="set LOOKALIKE_REAL_DATA to a folder with CUB_200_2011"
)
def test_the_real_birds():
    dataset = data.build("cub200", root=REAL)
    assert (len(dataset), dataset.present) == (11788, 200)


@pytest.mark.skipif(
    not (REAL / "images_background").is_dir(), reason="set LOOKALIKE_REAL_DATA to a folder with Omniglot"
)
def test_the_real_drawings():
    dataset = data.build("omniglot", root=REAL)
    assert (len(dataset), dataset.present) == (32460, 1623)
