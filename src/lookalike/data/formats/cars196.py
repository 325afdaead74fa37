"""Krause, Stark, Deng, Fei-Fei: 3D Object Representations for Fine-Grained Categorization, 3dRR 2013 [math G].

Both official layouts: all images in one folder with `cars_annos.mat`, or cars_train and cars_test with a devkit; and
the one of most mirrors, a folder per class. There the order of the classes is that of their names, which differs from
the official one within makes; the halves are the same, because the 98th class is the last before F (Eagle, then FIAT).
"""

from pathlib import Path
from typing import Any

from lookalike.data.dataset import Dataset
from lookalike.data.formats.matlab import read_mat
from lookalike.data.formats.official import Official, class_folders, files, split_at
from lookalike.data.vocabulary import numbered
from lookalike.errors import check

OFFICIAL = Official(
    "Cars196",
    "search for 'Stanford Cars dataset' (its page at Stanford is gone)",
    "{cars_annos.mat, car_ims/}, or {cars_train/, cars_test/, devkit/cars_meta.mat, devkit/cars_train_annos.mat, "
    "cars_test_annos_withlabels.mat}, or {train/, test/} with a folder per class",
)
MARKERS = ("cars_annos.mat", "devkit/cars_meta.mat")
COUNTS = {"train": [(98, 8054)], "test": [(98, 8131)]}
FIRST_TEST = "F"  # names from here on test


def cars196(root: str | Path, check_counts: bool = True) -> Dataset:
    """Cars196, 196 models of cars: of all 16,185 images, classes 1–98 train, 99–196 test; the make is the category."""
    if OFFICIAL.holding(root, *MARKERS) is None and (mirror := class_folders(root))[1]:
        return OFFICIAL.complete(_mirrored(*mirror), COUNTS if check_counts else None)
    root = OFFICIAL.find(root, *MARKERS)
    one = (root / "cars_annos.mat").exists() and ((root / "car_ims").is_dir() or not (root / "devkit").is_dir())
    rows, names = _one_folder(root) if one else _two_folders(root)
    nameless = [number for _, number in rows if not 1 <= number <= len(names)]
    check(
        not nameless, f"Cars196: class {nameless[:1]} has no name among the {len(names)} class names: unpack it again"
    )
    # sorting by name instead of class number would swap two pairs of classes
    labels, numbers = numbered([str(number) for _, number in rows])
    label_names = tuple(f"{int(number):03d} {names[int(number) - 1]}" for number in numbers)
    categories, category_names = numbered([names[number - 1].split()[0] for _, number in rows])
    splits = split_at(99, labels.new_tensor([number for _, number in rows]))
    paths = files(root, (path for path, _ in rows))
    dataset = Dataset("cars196", paths, labels, label_names, categories, category_names, splits, root=root)
    return OFFICIAL.complete(dataset, COUNTS if check_counts else None)


def _mirrored(root: Path, rows: list[tuple[str, str]]) -> Dataset:
    """Of a folder per class, called by its name, perhaps with its number before it."""
    labels, label_names = numbered([kind for _, kind in rows])
    plain = [kind.lstrip("0123456789._- ") for _, kind in rows]
    categories, category_names = numbered([name.split()[0].split("_")[0] for name in plain])
    splits = labels.new_tensor([0 if name < FIRST_TEST else 2 for name in plain])
    paths = files(root, (path for path, _ in rows))
    return Dataset("cars196", paths, labels, label_names, categories, category_names, splits, root=root)


def _one_folder(root: Path) -> tuple[list[tuple[str, int]], list[str]]:
    content = read_mat(root / "cars_annos.mat")
    rows = [(str(row["relative_im_path"]), int(row["class"][0])) for row in content["annotations"]]
    return rows, list(content["class_names"])


def _two_folders(root: Path) -> tuple[list[tuple[str, int]], list[str]]:
    rows = []
    for part, possible in (
        ("cars_train", ("devkit/cars_train_annos.mat",)),
        ("cars_test", ("cars_test_annos_withlabels.mat", "devkit/cars_test_annos_withlabels.mat")),
    ):
        present = [root / name for name in possible if (root / name).exists()]
        check(bool(present), f"Cars196 lacks {possible[0]} in '{root}': it must look like {OFFICIAL.layout}")
        annotations: list[dict[str, Any]] = read_mat(present[0])["annotations"]
        rows += [(f"{part}/{row['fname']}", int(row["class"][0])) for row in annotations]
    return rows, list(read_mat(root / "devkit/cars_meta.mat")["class_names"])
