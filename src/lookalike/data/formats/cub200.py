"""Wah, Branson, Welinder, Perona, Belongie: The Caltech-UCSD Birds-200-2011 Dataset, Caltech, 2011 [math G]."""

from pathlib import Path

from lookalike.data.dataset import Dataset
from lookalike.data.formats.official import Official, files, split_at
from lookalike.data.vocabulary import numbered

OFFICIAL = Official(
    "CUB-200-2011",
    "https://www.vision.caltech.edu/datasets/cub_200_2011",
    "CUB_200_2011/{images/, images.txt, image_class_labels.txt, classes.txt}",
)
MARKERS = ("images.txt",)
COUNTS = {"train": [(100, 5864)], "test": [(100, 5924)]}
IMAGES = 11788


def cub200(root: str | Path, check_counts: bool = True) -> Dataset:
    """CUB-200-2011, 200 kinds of birds: classes 1–100 train, 101–200 test; the last word of a name is the category."""
    root = OFFICIAL.find(root, *MARKERS)
    images = OFFICIAL.lines(root / "images.txt", 2)
    classes = {image: int(kind) for image, kind in OFFICIAL.lines(root / "image_class_labels.txt", 2)}
    names = {int(number): name for number, name in OFFICIAL.lines(root / "classes.txt", 2)}
    if check_counts:
        OFFICIAL.check_ids("images.txt", (int(image) for image, _ in images), IMAGES)
        OFFICIAL.check_ids("image_class_labels.txt", map(int, classes), IMAGES)
        OFFICIAL.check_ids("classes.txt", names, 200)
    numbers = [classes[image] for image, _ in images]
    # "001.Black_footed_Albatross" sorts by its number, so sorted names are the official order
    labels, label_names = numbered([names[number] for number in numbers])
    categories, category_names = numbered([names[number].split("_")[-1].split(".")[-1] for number in numbers])
    splits = split_at(101, labels.new_tensor(numbers))
    paths = files(root / "images", (path for _, path in images))
    dataset = Dataset("cub200", paths, labels, label_names, categories, category_names, splits, root=root)
    return OFFICIAL.complete(dataset, COUNTS if check_counts else None)
