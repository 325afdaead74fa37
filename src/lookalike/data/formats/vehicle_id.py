"""Liu, Tian, Wang, Pang, Huang: Deep Relative Distance Learning, CVPR 2016: PKU VehicleID [math G] [math C.8].

The paper counts 13,134 train vehicles with 110,178 images; the released train list is larger (13,164 with 113,346):
both are accepted. The category is the vehicle model, known for about half of the vehicles; FastAP's released loader
overwrites it by the colour, which is not reproduced here.
"""

from pathlib import Path

import torch

from lookalike.data.dataset import Dataset
from lookalike.data.formats.official import Official, files
from lookalike.data.vocabulary import numbered
from lookalike.errors import check, unknown

OFFICIAL = Official(
    "PKU VehicleID",
    "search for 'PKU VehicleID dataset' (given on request by its authors)",
    "VehicleID/{image/, attribute/model_attr.txt, train_test_split/train_list.txt and test_list_800.txt, …}",
)
MARKERS = ("train_test_split/train_list.txt",)
VEHICLES = {"small": 800, "medium": 1600, "large": 2400}
TRAIN = [(13134, 110178), (13164, 113346)]


def vehicle_id(root: str | Path, test: str = "small", check_counts: bool = True) -> Dataset:
    """PKU VehicleID, one class per vehicle, the vehicle model as category; test is small, medium or large.

    The protocol chooses queries and gallery: one random image of each test vehicle is the gallery.
    """
    if test not in VEHICLES:
        raise unknown("test list", test, VEHICLES)
    root = OFFICIAL.find(root, *MARKERS)
    lists = root / "train_test_split"
    train = OFFICIAL.lines(lists / "train_list.txt", 2)
    tested = OFFICIAL.lines(lists / f"test_list_{VEHICLES[test]}.txt", 2)
    models = dict(OFFICIAL.lines(root / "attribute/model_attr.txt", 2))
    rows = train + tested
    labels, label_names = numbered([vehicle for _, vehicle in rows])
    categories, category_names = numbered([models.get(vehicle, "") for _, vehicle in rows])
    splits = torch.tensor([0] * len(train) + [2] * len(tested))
    paths = files(root / "image", (f"{image}.jpg" for image, _ in rows))
    dataset = Dataset("vehicle_id", paths, labels, label_names, categories, category_names, splits, root=root)
    if check_counts:
        vehicles = len({vehicle for _, vehicle in tested})
        check(
            vehicles == VEHICLES[test],
            f"PKU VehicleID: test_list_{VEHICLES[test]}.txt has {vehicles:,} vehicles: it is cut off; unpack it again",
        )
    return OFFICIAL.complete(dataset, {"train": TRAIN} if check_counts else None)
