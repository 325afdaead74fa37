"""Liu, Luo, Qiu, Wang, Tang: DeepFashion, CVPR 2016, the In-shop Clothes Retrieval Benchmark [math G].

Chance Constraints gives 7,986 classes and 72,712 images; the split sums to 7,982 and 52,712 [math ERR-34].
"""

from pathlib import Path

import torch

from lookalike.data.dataset import ROLES, Dataset
from lookalike.data.formats.arrays import positions
from lookalike.data.formats.official import Official, files
from lookalike.data.vocabulary import numbered
from lookalike.errors import check

OFFICIAL = Official(
    "In-shop Clothes Retrieval",
    "get it from https://mmlab.ie.cuhk.edu.hk/projects/DeepFashion/InShopRetrieval.html",
    "{list_eval_partition.txt or Eval/list_eval_partition.txt, img/WOMEN/…, img/MEN/…}",
)
MARKERS = ("list_eval_partition.txt", "Eval/list_eval_partition.txt")
COUNTS = {"train": [(3997, 25882)], "test": [(3985, 26830)], "query": [(3985, 14218)], "gallery": [(3985, 12612)]}


def inshop(root: str | Path, check_counts: bool = True) -> Dataset:
    """In-shop clothes: 3,997 items train; 3,985 items are queried in a gallery; gender and type are the category."""
    root = OFFICIAL.find(root, *MARKERS)
    file = next(root / marker for marker in MARKERS if (root / marker).exists())
    rows = OFFICIAL.lines(file, 3, header=2)
    _check_length(file, len(rows), check_counts)
    status = [row[2] for row in rows]
    wrong = sorted(set(status) - {"train", "query", "gallery"})
    check(not wrong, f"In-shop: {file.name} has the status {wrong[:1]}: it must be train, query or gallery")
    labels, label_names = numbered([row[1] for row in rows])
    # img/WOMEN/Dresses/id_00000002/02_1_front.jpg
    categories, category_names = numbered(["/".join(row[0].split("/")[1:3]) for row in rows])
    splits = torch.tensor([0 if value == "train" else 2 for value in status])
    roles = positions("role", ["" if value == "train" else value for value in status], ROLES)
    base = next((root / name for name in (".", "Img") if (root / name / rows[0][0].split("/")[0]).is_dir()), root)
    paths = files(base, (row[0] for row in rows))
    dataset = Dataset("inshop", paths, labels, label_names, categories, category_names, splits, roles, root=root)
    return OFFICIAL.complete(dataset, COUNTS if check_counts else None)


def _check_length(file: Path, rows: int, check_counts: bool) -> None:
    """The first line of the list holds the number of rows."""
    check(rows > 0, f"In-shop: {file.name} has no rows: unpack it again")
    with file.open(encoding="utf-8", errors="replace") as lines:
        first = lines.readline(100).strip()
    short = check_counts and first.isdecimal() and first.lstrip("0") != str(rows)
    check(not short, f"In-shop: {file.name} announces {first} rows and has {rows:,}: it is cut off; unpack it again")
