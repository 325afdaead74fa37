"""The official datasets in miniature, with classes enough to train on."""

from pathlib import Path

import numpy as np
from PIL import Image

from lookalike.data import arrays
from lookalike.data.formats import cars196, cub200, inshop, omniglot, sop, vehicle_id

TRAIN, TEST, EACH = 8, 4, 6  # classes and images of a class


class Album:
    """Saves small pictures of distinguishable classes, and list files."""

    def __init__(self, root: Path) -> None:
        self.root, self.random = root, np.random.default_rng(0)
        self.looks: dict[object, np.ndarray] = {}

    def save(self, path: str, kind: object) -> None:
        look = self.looks.setdefault(kind, self.random.integers(0, 256, (20, 20, 3)))
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        noisy = np.clip(look + self.random.normal(0, 30, look.shape), 0, 255)
        Image.fromarray(noisy.astype(np.uint8)).save(file)

    def write(self, path: str, lines: list[str]) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n")


def kinds(first_test: int) -> list[int]:
    return [*range(1, TRAIN + 1), *range(first_test, first_test + TEST)]


def birds(album):
    rows = [(kind, f"{kind:03d}.Kind{kind}_Owl/{place}.jpg") for kind in kinds(101) for place in range(EACH)]
    for kind, path in rows:
        album.save(f"images/{path}", kind)
    album.write("classes.txt", [f"{kind} {kind:03d}.Kind{kind}_Owl" for kind in kinds(101)])
    album.write("images.txt", [f"{at} {path}" for at, (_, path) in enumerate(rows, 1)])
    album.write("image_class_labels.txt", [f"{at} {kind}" for at, (kind, _) in enumerate(rows, 1)])
    return cub200.cub200(album.root, check_counts=False)


def cars(album):
    from scipy.io import savemat

    rows = [(f"car_ims/{kind:03d}{place}.jpg", kind) for kind in kinds(99) for place in range(EACH)]
    for path, kind in rows:
        album.save(path, kind)
    layout = [("relative_im_path", "O"), ("bbox_x1", "O"), ("class", "O"), ("test", "O")]
    annotations = np.array([(path, 7, kind, 0) for path, kind in rows], dtype=layout)
    names = np.array([f"Make{kind % 3} Model {kind}" for kind in range(1, 197)], dtype=object)
    savemat(album.root / "cars_annos.mat", {"annotations": annotations[None], "class_names": names[None]})
    return cars196.cars196(album.root, check_counts=False)


def products(album):
    for file, chosen in (("Ebay_train.txt", kinds(101)[:TRAIN]), ("Ebay_test.txt", kinds(101)[TRAIN:])):
        lines = []
        for kind in chosen:
            for place in range(EACH):
                path = f"{('chair', 'lamp', 'sofa')[kind % 3]}_final/{kind}_{place}.JPG"
                album.save(path, kind)
                lines.append(f"{len(lines)} {kind} {kind % 3} {path}")
        album.write(file, ["image_id class_id super_class_id path", *lines])
    return sop.sop(album.root, check_counts=False)


def clothes(album):
    rows = []
    for kind in kinds(101):
        for place in range(EACH):
            path = f"img/WOMEN/{('Dresses', 'Denim')[kind % 2]}/id_{kind:08d}/{place}_front.jpg"
            album.save(path, kind)
            rows.append((path, f"id_{kind:08d}", "train" if kind <= TRAIN else ("query", "gallery")[place % 2]))
    lines = [str(len(rows)), "image_name item_id evaluation_status", *("     ".join(row) for row in rows)]
    album.write("list_eval_partition.txt", lines)
    return inshop.inshop(album.root, check_counts=False)


LISTS = {"small": 2, "medium": 3, "large": 4}


def vehicles(album):
    """With test lists of 2, 3 and 4 vehicles; vehicle_id.VEHICLES and TRAIN must be patched to load them."""
    lists = {"train_list": kinds(101)[:TRAIN]}
    lists |= {f"test_list_{size}": kinds(101)[TRAIN : TRAIN + size] for size in LISTS.values()}
    for name, chosen in lists.items():
        rows = [(f"{kind:04d}{place}", kind) for kind in chosen for place in range(EACH)]
        for image, kind in rows:
            album.save(f"image/{image}.jpg", kind)
        album.write(f"train_test_split/{name}.txt", [f"{image} {kind}" for image, kind in rows])
    album.write("attribute/model_attr.txt", [f"{kind} {kind % 2}" for kind in range(1, 5)])
    return vehicle_id.vehicle_id(album.root)


def drawings(album):
    for kind in kinds(101):
        part = "images_background" if kind <= TRAIN else "images_evaluation"
        for place in range(EACH):
            album.save(f"{part}/Alphabet{kind % 3}/character{kind:02d}/{kind:04d}_{place:02d}.png", kind)
    return omniglot.omniglot(album.root, check_counts=False)


def characters(_):
    """Not drawn from fonts: that takes longer than everything else here."""
    looks = np.random.default_rng(0).integers(0, 256, (TRAIN + TEST, 20, 20, 3), dtype=np.uint8)
    labels = np.repeat(np.arange(TRAIN + TEST), EACH)
    splits = ["train" if label < TRAIN else "test" for label in labels]
    return arrays(looks[labels], labels, splits=splits, name="glyphs")


LAYOUTS = {
    "cars196": cars,
    "cub200": birds,
    "glyphs": characters,
    "inshop": clothes,
    "omniglot": drawings,
    "sop": products,
    "vehicle_id": vehicles,
}
