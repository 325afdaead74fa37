"""Wah, Branson, Welinder, Perona, Belongie: The Caltech-UCSD Birds-200-2011 Dataset, Caltech, 2011 [math G].

With its lists, or as mirrors have it: a folder per class, "001.Black_footed_Albatross", perhaps in train/ and test/.
"""

from pathlib import Path

from lookalike.data.dataset import Dataset
from lookalike.data.formats.official import Official, class_folders, files, split_at
from lookalike.data.vocabulary import numbered
from lookalike.errors import check

OFFICIAL = Official(
    "CUB-200-2011",
    "get it from https://www.vision.caltech.edu/datasets/cub_200_2011",
    "CUB_200_2011/{images/, images.txt, image_class_labels.txt, classes.txt}",
)
MARKERS = ("images.txt",)
COUNTS = {"train": [(100, 5864)], "test": [(100, 5924)]}
IMAGES = 11788


def cub200(root: str | Path, check_counts: bool = True) -> Dataset:
    """CUB-200-2011, 200 kinds of birds: classes 1–100 train, 101–200 test; the last word of a name is the category."""
    if OFFICIAL.holding(root, *MARKERS) is None and (mirror := class_folders(root))[1]:
        return OFFICIAL.complete(_mirrored(*mirror), COUNTS if check_counts else None)
    root = OFFICIAL.find(root, *MARKERS)
    images = OFFICIAL.lines(root / "images.txt", 2)
    classes = {image: int(kind) for image, kind in OFFICIAL.lines(root / "image_class_labels.txt", 2)}
    names = {int(number): name for number, name in OFFICIAL.lines(root / "classes.txt", 2)}
    if check_counts:
        OFFICIAL.check_ids("images.txt", (int(image) for image, _ in images), IMAGES)
        OFFICIAL.check_ids("image_class_labels.txt", map(int, classes), IMAGES)
        OFFICIAL.check_ids("classes.txt", names, 200)
    numbers = [classes[image] for image, _ in images]
    rows = [(path, names[number], number) for (_, path), number in zip(images, numbers, strict=True)]
    return OFFICIAL.complete(_dataset(root, root / "images", rows), COUNTS if check_counts else None)


def _mirrored(root: Path, rows: list[tuple[str, str]]) -> Dataset:
    """Of folders whose names begin with the number of the class."""
    strange = [kind for _, kind in rows if not kind[:3].isdecimal()]
    check(not strange, f"CUB-200-2011: the folder {strange[:1]} does not begin with a class number such as 001.")
    return _dataset(root, root, [(path, kind, int(kind[:3])) for path, kind in rows])


def _dataset(root: Path, below: Path, rows: list[tuple[str, str, int]]) -> Dataset:
    """Of paths with the name and the number of their class."""
    # "001.Black_footed_Albatross" sorts by its number, so sorted names are the official order
    labels, label_names = numbered([name for _, name, _ in rows])
    categories, category_names = numbered([name.split("_")[-1].split(".")[-1] for _, name, _ in rows])
    splits = split_at(101, labels.new_tensor([number for _, _, number in rows]))
    paths = files(below, (path for path, _, _ in rows))
    return Dataset("cub200", paths, labels, label_names, categories, category_names, splits, root=root)
