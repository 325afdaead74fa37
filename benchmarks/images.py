"""Images per second on one core, beside Pillow: decode, random-resized-crop to 224, flip.

    python -m benchmarks.images [--images 96] [--rounds 7] [--json FILE]

JPEGs of 500 × 375 (quality 90) cut from the two photos that come with scikit-learn. Ours, ours with the decoded cache
and Pillow (open, convert, crop, bilinear resize, to a tensor) take turns on the same files with the same crops; the
fastest round of each counts, because the machine has other tenants. Then, once each: a 12-megapixel photo to its
evaluation crop and how far reduced decoding is from the full one (in decibels), a table of a million rows, near
duplicates among 100,000 hashes, the glyphs.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from benchmarks.options import reader
from lookalike import data
from lookalike.data.images.augment import apply
from lookalike.data.images.decode import Encoded, resize
from lookalike.data.images.source import Files
from lookalike.data.images.view import Ticket

Run = Callable[[int], object]
HASHES, ROWS = 100_000, 1_000_000


@contextmanager
def workshop() -> Iterator[Path]:
    """A folder that is gone afterwards, with the caches in it."""
    with tempfile.TemporaryDirectory() as place:
        os.environ["LOOKALIKE_CACHE"] = f"{place}/cache"
        yield Path(place)


def photos(place: Path, count: int) -> Path:
    """Different crops of two real photos."""
    from sklearn.datasets import load_sample_images

    sources = [Image.fromarray(image) for image in load_sample_images().images]
    random = np.random.default_rng(0)
    for number in range(count):
        left, top = int(random.integers(0, 130)), int(random.integers(0, 45))
        crop = sources[number % 2].crop((left, top, left + 508, top + 381))
        folder = place / "photos" / f"class {number % 8}"
        folder.mkdir(parents=True, exist_ok=True)
        crop.resize((500, 375), Image.Resampling.LANCZOS).save(folder / f"{number}.jpg", quality=90)
    return place / "photos"


def pillow(dataset: data.Dataset, view: data.AugmentedImages) -> Run:
    """What a usual loader does, with our crops."""
    assert isinstance(dataset.images, Files)
    files = dataset.images

    def run(row: int) -> torch.Tensor:
        with Image.open(files.path(row)) as file:
            image = file.convert("RGB")
        cut = view.augmentation.cut(image.height, image.width, torch.Generator().manual_seed(row))
        top, left, height, width = cut.box
        crop = image.crop((left, top, left + width, top + height)).resize((224, 224), Image.Resampling.BILINEAR)
        crop = crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if cut.flip else crop
        return torch.from_numpy(np.array(crop)).permute(2, 0, 1).contiguous()

    return run


def speeds(place: Path, images: int, rounds: int) -> dict[str, float]:
    """Images per second of the three ways, taking turns."""
    dataset = data.folder(photos(place, images))
    train = data.preset("roth").train
    plain, kept = data.AugmentedImages(dataset, train), data.AugmentedImages(data.decoded(dataset, 256), train)
    ways: dict[str, Run] = {
        "pillow": pillow(dataset, plain),
        "lookalike": lambda row: plain[Ticket(row)],
        "lookalike, decoded cache": lambda row: kept[Ticket(row)],
    }
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, run in ways.items():
            begin = time.perf_counter()
            for row in range(images):
                run(row)
            best[name] = min(best[name], time.perf_counter() - begin)
    return {name: images / seconds for name, seconds in best.items()}


def large_photo(place: Path) -> dict[str, float]:
    """Milliseconds from a 12-megapixel JPEG to its evaluation crop; decibels between reduced and full decoding."""
    file = next((place / "photos").rglob("*.jpg"))
    Image.open(file).resize((4000, 3000), Image.Resampling.BICUBIC).save(place / "large.jpg", quality=90)
    content = (place / "large.jpg").read_bytes()
    centre = data.preset("roth").evaluation
    cut = centre.cut(3000, 4000, torch.Generator())
    ours = fastest(lambda: apply(Encoded(content), cut))
    theirs = fastest(
        lambda: Image.open(place / "large.jpg").convert("RGB").resize((341, 256), Image.Resampling.BILINEAR)
    )
    full = resize(Encoded(content).decode(), *cut.whole).float()
    reduced = resize(Encoded(content).decode(256 / 3000), *cut.whole).float()
    error = (full - reduced).square().mean().item()
    return {"milliseconds": ours * 1e3, "pillow": theirs * 1e3, "psnr": 10 * float(np.log10(255**2 / error))}


def fastest(run: Callable[[], object], rounds: int = 5) -> float:
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def million_rows(place: Path) -> dict[str, float]:
    """Seconds and peak megabytes of loading a table, in a process of its own."""
    with (place / "million.csv").open("w") as lines:
        lines.write("path,label,category,split\n")
        for row in range(ROWS):
            lines.write(f"images/{row % 5000:05d}/photo_{row:08d}.jpg,class {row // 10},category {row % 12},train\n")
    program = (
        "import time, resource; from lookalike import data; begin = time.perf_counter(); data.table('million.csv');"
        "print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=place, capture_output=True, text=True, check=True)
    seconds, kilobytes = run.stdout.split()
    return {"seconds": float(seconds), "megabytes": int(kilobytes) / 1024}


def near_duplicates() -> dict[str, float]:
    """Seconds to group 100,000 images by hash and thumbnail (compiled already)."""
    from lookalike.data.audit.duplicates import near_groups
    from lookalike.data.audit.scan import Scan

    random = np.random.default_rng(0)
    vectors = random.normal(size=(HASHES, 256)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    hashes = random.integers(0, 2**63, HASHES, dtype=np.uint64)
    digests = random.integers(0, 256, (HASHES, 16)).astype(np.uint8)
    seen = Scan(np.ones(HASHES, bool), digests, hashes, vectors, ())
    near_groups(Scan(seen.readable[:9], digests[:9], hashes[:9], vectors[:9], ()))
    return {"seconds": fastest(lambda: near_groups(seen), 1)}


def glyphs() -> dict[str, float]:
    """Seconds to draw the glyphs, and what raw pixels achieve on their test half."""
    begin = time.perf_counter()
    dataset = data.glyphs()
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "recall@1 of raw pixels": raw_recall(dataset.where(split="test"))}


def raw_recall(dataset: data.Dataset) -> float:
    """Nearest neighbour by cosine of the pixels without their mean."""
    pixels = torch.stack([dataset.images.open(row).decode()[0] for row in range(len(dataset))]).float().flatten(1)
    unit = torch.nn.functional.normalize(pixels - pixels.mean(1, keepdim=True), dim=1)
    scores = unit @ unit.T
    scores.fill_diagonal_(-9)
    return float((dataset.labels[scores.argmax(1)] == dataset.labels).float().mean())


def report(result: dict[str, Any]) -> str:
    base = result["images per second"]["pillow"]
    lines = [f"{'decode + random-resized-crop 224, one core':<44}{'images/s':>9}{'× Pillow':>10}"]
    for name, speed in result["images per second"].items():
        lines.append(f"{name:<44}{speed:>9.0f}{speed / base:>10.2f}")
    lines.append("")
    for name, figures in result.items():
        if name != "images per second":
            lines.append(f"{name:<44}" + ", ".join(f"{key} {value:.3g}" for key, value in figures.items()))
    return "\n".join(lines)


def main() -> None:
    given = reader(__doc__.splitlines()[0] if __doc__ else "", images=96, rounds=7).parse_args()
    torch.set_num_threads(1)
    with workshop() as place:
        result: dict[str, Any] = {"images per second": speeds(place, given.images, given.rounds)}
        result["12 megapixels to the evaluation crop"] = large_photo(place)
        result["table of 1,000,000 rows"] = million_rows(place)
        result["near duplicates among 100,000"] = near_duplicates()
        result["glyphs"] = glyphs()
    result["this process"] = {"peak megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    print(report(result))
    if given.json:
        given.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
