"""Oh Song, Xiang, Jegelka, Savarese: Lifted Structured Feature Embedding, CVPR 2016: Online Products [math G]."""

from pathlib import Path

import torch

from lookalike.data.dataset import Dataset
from lookalike.data.formats.official import Official, files
from lookalike.data.vocabulary import numbered

OFFICIAL = Official(
    "Stanford Online Products",
    "search for 'Stanford_Online_Products.zip' (its page at Stanford is gone)",
    "Stanford_Online_Products/{Ebay_train.txt, Ebay_test.txt, bicycle_final/, cabinet_final/, …}",
)
MARKERS = ("Ebay_train.txt",)
COUNTS = {"train": [(11318, 59551)], "test": [(11316, 60502)]}


def sop(root: str | Path, check_counts: bool = True) -> Dataset:
    """Stanford Online Products, 22,634 products in 12 categories: the official lists of train and test products."""
    root = OFFICIAL.find(root, *MARKERS)
    train = OFFICIAL.lines(root / "Ebay_train.txt", 4, header=1)
    test = OFFICIAL.lines(root / "Ebay_test.txt", 4, header=1)
    rows = train + test
    if check_counts:
        listed = sum(images for part in COUNTS.values() for _, images in part)
        OFFICIAL.check_ids("Ebay_train.txt with Ebay_test.txt", (int(row[0]) for row in rows), listed)
    labels, label_names = numbered([row[1] for row in rows])
    categories, category_names = numbered([row[3].split("/")[0].removesuffix("_final") for row in rows])
    splits = torch.tensor([0] * len(train) + [2] * len(test))
    paths = files(root, (row[3] for row in rows))
    dataset = Dataset("sop", paths, labels, label_names, categories, category_names, splits, root=root)
    return OFFICIAL.complete(dataset, COUNTS if check_counts else None)
