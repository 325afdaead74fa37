"""Lake, Salakhutdinov, Tenenbaum: Human-level concept learning through program induction, Science 2015 (Omniglot)."""

from pathlib import Path

import torch

from lookalike.data.dataset import Dataset
from lookalike.data.formats.folder import is_image, walk
from lookalike.data.formats.official import Official, files
from lookalike.data.vocabulary import numbered
from lookalike.errors import check

OFFICIAL = Official(
    "Omniglot",
    "get it from https://github.com/brendenlake/omniglot",
    "{images_background/Alphabet/character01/0001_01.png, images_evaluation/…}",
)
MARKERS = ("images_background",)
PARTS = ("images_background", "images_evaluation")
COUNTS = {"train": [(964, 19280)], "test": [(659, 13180)]}
DRAWINGS = 20


def omniglot(root: str | Path, check_counts: bool = True) -> Dataset:
    """Omniglot, handwritten characters: 30 background alphabets train, 20 evaluation alphabets test, as categories."""
    root = OFFICIAL.find(root, *MARKERS)
    drawings = []
    for part in PARTS:
        check((root / part).is_dir(), f"Omniglot lacks {part} in '{root}': it must look like {OFFICIAL.layout}")
        drawings += sorted(f"{part}/{file}" for file in walk(root / part) if is_image(file) and file.count("/") == 2)
    characters = ["/".join(file.split("/")[1:3]) for file in drawings]
    labels, label_names = numbered(characters)
    categories, category_names = numbered([file.split("/")[1] for file in drawings])
    if check_counts:
        sizes = torch.bincount(labels, minlength=len(label_names))
        short = [f"{label_names[row]} ({int(sizes[row])})" for row in (sizes != DRAWINGS).nonzero().flatten().tolist()]
        named = ", ".join(short[:3])
        check(not short, f"Omniglot: {len(short)} characters do not have {DRAWINGS} drawings: {named}: unpack it again")
    splits = torch.tensor([0 if file.startswith(PARTS[0]) else 2 for file in drawings])
    dataset = Dataset(
        "omniglot", files(root, drawings), labels, label_names, categories, category_names, splits, root=root
    )
    return OFFICIAL.complete(dataset, COUNTS if check_counts else None)
