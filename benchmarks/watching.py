"""How soon does a server notice that its queries are others, and how often is it wrong? By replay, on unseen birds.

    python -m benchmarks.watching PATH/CUB_200_2011 FOREIGN_FOLDER [--features FILE.npz] [--repeats 20] [--json FILE]

Classes 101-200 of CUB with a frozen network. Half of each class's images are the index; of the other half, those of 50
classes calibrate (the reference), and those of the other 50 are the ordinary queries of a replay. Ordinary queries come
in blocks of one class, of up to 30 images; 10,000 of them are drawn in each repeat and false alarms are counted, by the
first alarm of any score. Then, after 500 ordinary ones, the queries change: blurred, turned upside down, or photos of
something else; the delay is the number of changed queries until the first alarm. Repeats draw other classes and orders.
`--features` keeps the vectors, which take minutes to compute.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.frozen_cub import unseen
from lookalike.data.images.decode import Encoded
from lookalike.image_files import read
from lookalike.models import Architecture, Model
from lookalike.search.items import Answer, Hit, Item
from lookalike.search.watching.reference import reference
from lookalike.search.watching.watch import Watch

CHANGES = ("blurred", "upside down", "foreign")
CHANGED = 1_500  # images of each change
ORDINARY, BEFORE, PATIENCE = 10_000, 500, 1_000
RUN = 30  # queries of one class in a row


def changed(pixels: Any, how: str) -> Any:
    """A picture (3 × h × w) as a bad camera or a careless hand would send it."""
    if how == "upside down":
        return pixels.flip(1, 2)
    if how == "blurred":
        import torch.nn.functional as functional

        side = max(pixels.shape[1:]) // 24 * 2 + 1
        spread = functional.avg_pool2d(pixels[None].float(), side, 1, side // 2, count_include_pad=False)
        return spread[0].round().clamp(0, 255).byte()
    return pixels


def features(root: Path, foreign: Path) -> dict[str, NDArray[Any]]:
    model = Model.create(Architecture("efficientnet_lite0", dim=None), weights="pretrained")
    model.preprocessing = model.preprocessing.sized(128, 144)
    paths, labels = unseen(root)
    others = sorted(path for path in foreign.rglob("*") if path.suffix.lower() in (".jpg", ".png"))
    draw = np.random.default_rng(0)
    some = np.sort(draw.permutation(len(paths))[:CHANGED])
    arrays: dict[str, NDArray[Any]] = {"ordinary": encoded(model, paths, ""), "labels": np.array(labels), "some": some}
    for how in ("blurred", "upside down"):
        arrays[how] = encoded(model, [paths[row] for row in some], how)
    chosen = draw.permutation(len(others))[:CHANGED]
    arrays["foreign"] = encoded(model, [others[row] for row in chosen], "")
    return arrays


def encoded(model: Model, paths: list[Path], how: str) -> NDArray[np.float32]:
    rows = []
    for start in range(0, len(paths), 64):
        pictures = [changed(Encoded(read(path)).decode(), how) for path in paths[start : start + 64]]
        rows.append(model.encode(pictures, backend="auto").numpy())
    vectors = np.concatenate(rows).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


class Replay:
    """One division of the images into an index, calibration and queries."""

    def __init__(self, arrays: dict[str, NDArray[Any]], seed: int) -> None:
        self.draw, self.arrays = np.random.default_rng(seed), arrays
        vectors, labels = arrays["ordinary"], arrays["labels"]
        kept = self.draw.random(len(labels)) < 0.5
        classes = self.draw.permutation(np.unique(labels))
        mine = np.isin(labels, classes[: len(classes) // 2])
        self.items, self.asked = vectors[kept], np.flatnonzero(~kept & ~mine)
        calibrating = np.flatnonzero(~kept & mine)
        near = [(vectors[rows] @ self.items.T).max(1) for rows in np.array_split(calibrating, 20)]
        found = reference(
            self.items, vectors[calibrating], np.concatenate(near).tolist(), labels[calibrating].astype(str).tolist()
        )
        assert found is not None
        self.reference, self.calibrating = found, calibrating

    def ordinary(self, count: int) -> NDArray[np.float32]:
        """Queries in runs of one class."""
        labels = self.arrays["labels"][self.asked]
        rows: list[int] = []
        while len(rows) < count:
            own = self.asked[labels == self.draw.choice(labels)]
            rows += self.draw.permutation(own)[: self.draw.integers(1, RUN + 1)].tolist()
        return np.asarray(self.arrays["ordinary"][rows[:count]])

    def other(self, how: str) -> NDArray[np.float32]:
        vectors = self.arrays[how]
        if how != "foreign":  # pictures of the classes that ask
            vectors = vectors[np.isin(self.arrays["some"], self.asked)]
        return np.asarray(vectors[self.draw.integers(0, len(vectors), PATIENCE)])

    def alarms(self, watch: Watch, queries: NDArray[np.float32]) -> list[int]:
        """The places of the queries that raise an alarm."""
        near = np.concatenate([(rows @ self.items.T).max(1) for rows in np.array_split(queries, 20)])
        hits = [Answer([Hit(Item("item"), float(score))], "maybe") for score in near]
        return [row for row, hit in enumerate(hits) if watch.answered(str(row), queries[row : row + 1], hit)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("foreign", type=Path)
    parser.add_argument("--features", type=Path)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.features is not None and given.features.is_file():
        with np.load(given.features) as content:
            arrays = dict(content)
    else:
        arrays = features(given.root, given.foreign)
        if given.features is not None:
            np.savez(given.features, **arrays)  # type: ignore[arg-type]
    false, delays = [], {how: [] for how in CHANGES}  # type: ignore[var-annotated]
    for seed in range(given.repeats):
        replay = Replay(arrays, seed)
        false.append(len(replay.alarms(Watch(replay.reference, None), replay.ordinary(ORDINARY))))
        for how in CHANGES:
            watch = Watch(replay.reference, None)
            early = replay.alarms(watch, replay.ordinary(BEFORE))
            late = replay.alarms(watch, replay.other(how))
            delays[how].append(-1 if early else late[0] + 1 if late else PATIENCE + 1)
    total = sum(false)
    # the upper limit of a Poisson count at 95%: -ln(0.05) where there is none, else by its normal approximation
    upper = (3.0 if total == 0 else total + 1.92 + 1.96 * np.sqrt(total + 0.96)) / given.repeats
    result: dict[str, Any] = {
        "repeats": given.repeats,
        "false alarms in 10,000 ordinary queries": {"mean": total / given.repeats, "most": max(false), "upper": upper},
    }
    for how, values in delays.items():
        reached = sum(0 < value <= 200 for value in values) / len(values)
        result[how] = {"median delay": float(np.median(values)), "worst": max(values), "within 200": reached}
    print(json.dumps(result, indent=2))
    if given.json is not None:
        given.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
