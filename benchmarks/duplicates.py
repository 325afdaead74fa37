"""Precision and recall of `lookalike duplicates` on made pairs: photos, and what people do to copies of them.

python -m benchmarks.duplicates FOLDER… [--photos 500] [--crops]

A few photos of every folder are taken, spread evenly, and a copy of each is made in one of several ways. Originals
and copies stand in one index, so that every other photo of the same class is a chance to be wrong. A pair counts as
found at the level at which `duplicates` lists it; the look-alikes, which depend on a model, are not measured here.

With `--crops` the copies are crops from anywhere in the photo, every second one half as large, and the index has the
features of EfficientNet-lite0, as it comes: crops are looked for among the nearest.
"""

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import combinations
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from lookalike.data.formats.folder import is_image, walk
from lookalike.models import Architecture, Model
from lookalike.search import Index
from lookalike.search.items import Item
from lookalike.search.repeats import Group, crops, same_picture, without

Photo = Image.Image
Ways = Mapping[str, tuple[str, Callable[[Photo], Photo], int]]
LARGEST = 640  # pixels of a side: as a shop keeps its photos


def _resized(photo: Photo, share: float) -> Photo:
    return photo.resize((max(8, int(photo.width * share)), max(8, int(photo.height * share))))


def _cropped(photo: Photo, share: float) -> Photo:
    width, height = photo.width * share / 2, photo.height * share / 2
    return photo.crop((int(width), int(height), int(photo.width - width), int(photo.height - height)))


def _part(photo: Photo, sides: float) -> Photo:
    """What is left when this share of both sides is cut off, somewhere."""
    draw = np.random.default_rng(photo.width * 7919 + photo.height + int(np.asarray(photo)[::16, ::16].sum()))
    width, height = int(photo.width * (1 - sides)), int(photo.height * (1 - sides))
    left, top = (int(draw.integers(0, most + 1)) for most in (photo.width - width, photo.height - height))
    part = photo.crop((left, top, left + width, top + height))
    return _resized(part, 0.5) if draw.random() < 0.5 else part


# name -> the expected level, what is done, the quality of the JPEG
MADE: Ways = {
    "JPEG of quality 40": ("same picture", lambda photo: photo, 40),
    "half as large": ("same picture", lambda photo: _resized(photo, 0.5), 85),
    "a fifth as large": ("same picture", lambda photo: _resized(photo, 0.2), 85),
    "15% brighter": ("same picture", lambda photo: ImageEnhance.Brightness(photo).enhance(1.15), 85),
    "in grey": ("same picture", lambda photo: photo.convert("L").convert("RGB"), 85),
    "a border of 2% cut off": ("same picture", lambda photo: _cropped(photo, 0.04), 85),
    "mirrored": ("mirror image", ImageOps.mirror, 90),
    "mirrored, half as large, quality 60": ("mirror image", lambda photo: _resized(ImageOps.mirror(photo), 0.5), 60),
}
CROPS: Ways = {
    "8% of the area cut off": ("crop", lambda photo: _part(photo, 1 - 0.92**0.5), 80),
    "8% of the sides": ("crop", lambda photo: _part(photo, 0.08), 80),
    "20% of the area": ("crop", lambda photo: _part(photo, 1 - 0.8**0.5), 80),
    "20% of the sides": ("crop", lambda photo: _part(photo, 0.2), 80),
}


def pairs(groups: Sequence[Group]) -> set[frozenset[str]]:
    """All pairs of files within a group."""
    names = ([Path(item.id).name for item in group.items] for group in groups)
    return {frozenset(pair) for some in names for pair in combinations(some, 2)}


def make(root: Path, photos: int, place: Path, ways: Ways) -> tuple[list[Item], dict[frozenset[str], str]]:
    """Photos and their copies as files; which pairs are copies, and how they were made."""
    names = sorted(name for name in walk(root, outside=[]) if is_image(name))
    chosen = [names[number] for number in np.linspace(0, len(names) - 1, min(photos, len(names))).astype(int)]
    items, made = [], {}
    for number, name in enumerate(dict.fromkeys(chosen)):
        photo = ImageOps.exif_transpose(Image.open(root / name)).convert("RGB")
        photo.thumbnail((LARGEST, LARGEST))
        how = list(ways)[number % len(ways)]
        _, change, quality = ways[how]
        files = [place / f"{number}.jpg", place / f"{number} copy.jpg"]
        photo.save(files[0], quality=90)
        change(photo).save(files[1], quality=quality)
        items += [Item(file.name, str(file)) for file in files]
        made[frozenset(file.name for file in files)] = how
    return items, made


def found_copies(items: Sequence[Item], place: Path) -> dict[str, set[frozenset[str]]]:
    with closing(Index.create(place / "index", dim=2)) as index:
        index.store.put(items, np.ones((len(items), 2), np.float32))
        same, mirrored = same_picture([index.store])
        return {"same picture": pairs(same), "mirror image": pairs(without(mirrored, same))}


def found_crops(items: Sequence[Item], place: Path) -> dict[str, set[frozenset[str]]]:
    """Also what is listed as the same picture counts as found."""
    model = Model.create(Architecture("efficientnet_lite0", dim=None), "pretrained")
    with closing(Index.create(place / "index", model)) as index:
        index.add([str(item.path) for item in items])
        began = time.process_time()
        known, _ = same_picture([index.store])
        groups = crops(index.store, known=known)
        print(f"{1e3 * (time.process_time() - began) / len(items):.0f} ms a photo")
        return {"crop": pairs([*known, *groups])}


def measure(root: Path, photos: int, ways: Ways) -> None:
    with tempfile.TemporaryDirectory() as name:
        items, made = make(root, photos, Path(name), ways)
        found = (found_crops if ways is CROPS else found_copies)(items, Path(name))
    print(f"\n{root.name}: {len(items) // 2:,} photos, as many copies\n")
    print("| copy | level | pairs | recall |\n|---|---|---|---|")
    counts = Counter(made.values())
    for how, (level, _, _) in ways.items():
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
    parser.add_argument("--crops", action="store_true")
    told = parser.parse_args()
    for folder in told.folders:
        measure(folder, told.photos, CROPS if told.crops else MADE)


if __name__ == "__main__":
    main()
