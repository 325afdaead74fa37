"""Precision and recall of `lookalike duplicates` on made pairs: photos, and what people do to copies of them.

python -m benchmarks.duplicates FOLDER… [--photos 500]

Of every folder so many photos are taken, spread evenly, and a copy of each is made in one of several ways. Originals
and copies stand in one index, so that every other photo of the same class is a chance to be wrong. A pair counts as
found at the level at which `duplicates` lists it; the look-alikes, which depend on a model, are not measured here.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from lookalike.data.formats.folder import is_image, walk
from lookalike.search import Index
from lookalike.search.items import Item
from lookalike.search.repeats import Group, same_picture, without

Photo = Image.Image
LARGEST = 640  # pixels of a side: as a shop keeps its photos


def _resized(photo: Photo, share: float) -> Photo:
    return photo.resize((max(8, int(photo.width * share)), max(8, int(photo.height * share))))


def _cropped(photo: Photo, share: float) -> Photo:
    width, height = photo.width * share / 2, photo.height * share / 2
    return photo.crop((int(width), int(height), int(photo.width - width), int(photo.height - height)))


# name -> the expected level, what is done, the quality of the JPEG
MADE: Mapping[str, tuple[str, Callable[[Photo], Photo], int]] = {
    "JPEG of quality 40": ("same picture", lambda photo: photo, 40),
    "half as large": ("same picture", lambda photo: _resized(photo, 0.5), 85),
    "a fifth as large": ("same picture", lambda photo: _resized(photo, 0.2), 85),
    "15 % brighter": ("same picture", lambda photo: ImageEnhance.Brightness(photo).enhance(1.15), 85),
    "in grey": ("same picture", lambda photo: photo.convert("L").convert("RGB"), 85),
    "a border of 2 % cut off": ("same picture", lambda photo: _cropped(photo, 0.04), 85),
    "mirrored": ("mirror image", ImageOps.mirror, 90),
    "mirrored, half as large, quality 60": ("mirror image", lambda photo: _resized(ImageOps.mirror(photo), 0.5), 60),
}


def pairs(groups: Sequence[Group]) -> set[frozenset[str]]:
    """All pairs of items within a group."""
    return {frozenset(pair) for group in groups for pair in combinations([item.id for item in group.items], 2)}


def make(root: Path, photos: int, place: Path) -> tuple[list[Item], dict[frozenset[str], str]]:
    """Photos and their copies as files; which pairs are copies, and how they were made."""
    names = sorted(name for name in walk(root, outside=[]) if is_image(name))
    chosen = [names[number] for number in np.linspace(0, len(names) - 1, min(photos, len(names))).astype(int)]
    items, made = [], {}
    for number, name in enumerate(dict.fromkeys(chosen)):
        photo = ImageOps.exif_transpose(Image.open(root / name)).convert("RGB")
        photo.thumbnail((LARGEST, LARGEST))
        how = list(MADE)[number % len(MADE)]
        _, change, quality = MADE[how]
        files = [place / f"{number}.jpg", place / f"{number} copy.jpg"]
        photo.save(files[0], quality=90)
        change(photo).save(files[1], quality=quality)
        items += [Item(file.name, str(file)) for file in files]
        made[frozenset(file.name for file in files)] = how
    return items, made


def measure(root: Path, photos: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        items, made = make(root, photos, place)
        index = Index.create(place / "index", dim=2)
        index.store.put(items, np.ones((len(items), 2), np.float32))
        same, mirrored = same_picture([index.store])
        found = {"same picture": pairs(same), "mirror image": pairs(without(mirrored, same))}
        index.close()
    print(f"\n{root.name}: {len(items) // 2:,} photos, as many copies\n")
    print("| copy | level | pairs | recall |\n|---|---|---|---|")
    counts = Counter(made.values())
    for how, (level, _, _) in MADE.items():
        right = sum(pair in found[level] for pair, own in made.items() if own == how)
        print(f"| {how} | {level} | {counts[how]} | {right / max(1, counts[how]):.3f} |")
    for level, listed in found.items():
        right = sum(pair in made for pair in listed)
        wrong = [" and ".join(sorted(pair)) for pair in listed if pair not in made]
        print(f"\n{level}: {len(listed):,} pairs listed, precision {right / max(1, len(listed)):.3f}")
        print(f"not made: {wrong[:8]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--photos", type=int, default=500)
    told = parser.parse_args()
    for folder in told.folders:
        measure(folder, told.photos)


if __name__ == "__main__":
    main()
