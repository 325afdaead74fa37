"""What wrong labels cost a model that learns from them, and how much of that `train.suspects` wins back.

python -m benchmarks.learning_from_noise NAME=PLACE [NAME=PLACE …] [--seeds 5] [--rates 0.1,0.2,0.4] [--json FILE]

A PLACE is a folder of photos or an .npz file of features with labels, as benchmarks.discover takes them; at most 20
photos of a class are used. A seed draws half of the classes to learn from; 10, 20 and 40% of their labels are made
wrong, at random or to one of the three classes that look most alike. What learns is the head that `fit` trains on
frozen features, 400 steps of its loss; figures are those on the other half of the classes, with right labels.

"Keep", "weigh" and "drop" are those of `train.suspects`; "chosen" is what `fit` takes without the setting, by all
labels of the learning half. Each is what is lost against learning from right labels, a mean over seeds with a 95%
interval (Student's t), and as a share of what "keep" loses; "over half" is what is lost beyond half of that, paired by
seed: an interval below 0 means that more than half is got back. A rate of 0 shows what a remedy costs where nothing is
wrong.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.discover import features_of
from benchmarks.label_noise import spoilt
from benchmarks.questions import interval
from benchmarks.verdicts import unit
from lookalike.data import arrays
from lookalike.evaluation import evaluate
from lookalike.fit import readouts
from lookalike.fit.candidates import Seen
from lookalike.fit.defaults import every
from lookalike.fit.prepare import LabelledFeatures
from lookalike.fit.sample import turns
from lookalike.fit.taught_labels import decided, doubts_of
from lookalike.recipe import build, of_tree

METRICS = ("map@r", "recall@1")
WAYS = ("keep", "weigh", "drop", "chosen")
EACH = 20  # photos of a class


def features(place: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Those of at most EACH photos of a class."""
    if place.endswith(".npz"):
        with np.load(place, allow_pickle=False) as content:
            rows, labels = content["features"], content["labels"]
    else:
        rows, labels = features_of(Path(place))
    order = np.random.default_rng(seed).permutation(len(labels))
    few = order[turns(torch.from_numpy(labels[order])).numpy() < EACH]
    return rows[np.sort(few)], labels[np.sort(few)]


class NoisyClasses:
    """Half of the classes to learn from, with labels of which some are wrong, and the other half to judge by."""

    def __init__(self, rows: np.ndarray, labels: np.ndarray, rate: float, alike: bool, seed: int) -> None:
        tables = every()[1]
        tables["images"] |= {"size": 224, "short_side": 256}
        self.recipe = replace(of_tree(tables), seed=seed)
        self.model = build.model(self.recipe)
        classes = int(labels.max()) + 1
        taught = np.isin(labels, np.random.default_rng(100 + seed).permutation(classes)[: classes // 2])
        self.points, self.unseen = torch.from_numpy(rows[taught]), torch.from_numpy(rows[~taught])
        self.codes = torch.from_numpy(labels[~taught])
        true = np.unique(labels[taught], return_inverse=True)[1]
        directions = unit(rows[taught])
        given = spoilt(directions - directions.mean(0), true, rate, alike, seed)
        self.true, self.given = torch.from_numpy(true), torch.from_numpy(given)

    def head(self, labels: Tensor, rows: Tensor | None = None, chances: Tensor | None = None) -> dict[str, float]:
        """A head on the features that learns these labels, on unseen classes."""
        every = LabelledFeatures(self.points, labels, chances)
        head = readouts.trained_head(self.recipe, self.model, every if rows is None else every.of(rows))
        with torch.inference_mode():
            result = evaluate(head(self.unseen), self.codes, metrics=METRICS, normalise="sphere")
        return {name: result[name] for name in METRICS}

    def figures(self) -> dict[str, Any]:
        seen = Seen(arrays(np.zeros((len(self.given), 1, 1), np.uint8), self.given.numpy()), None)
        doubts, learn = doubts_of(seen, self.points), decided(self.recipe, self.model, seen, self.points)["learn"]
        ways = {
            "keep": self.head(self.given),
            "weigh": self.head(self.given, chances=doubts.chances),
            "drop": self.head(self.given, ~doubts.doubted),
        }
        return {**ways, "chosen": ways[learn], "doubted": float(doubts.doubted.float().mean()), "learn": learn}


def shown(name: str, rows: list[dict[str, Any]]) -> None:
    share, chosen = float(np.mean([row["doubted"] for row in rows])), [row["learn"] for row in rows]
    right = interval([row["right"]["map@r"] for row in rows])
    print(f"{name}: {len(rows)} seeds, right labels map@r {right}; in doubt {share:.0%}; chosen: {', '.join(chosen)}")
    for metric in METRICS:
        lost = {way: [row["right"][metric] - row[way][metric] for row in rows] for way in WAYS}
        for way in WAYS:
            given = lost["keep"]
            half = interval([own - other / 2 for own, other in zip(lost[way], given, strict=True)])
            beside = f"  share {np.mean(lost[way]) / np.mean(given):.2f}  over half {half}" if any(given) else ""
            print(f"  {metric:8} {way:7} lost {interval(lost[way])}{beside}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", metavar="NAME=PLACE")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rates", default="0.1,0.2,0.4")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = json.loads(options.json.read_text()) if options.json is not None and options.json.is_file() else {}
    for name, place in (text.split("=", 1) for text in options.places):
        content, right = features(place), dict[int, Any]()
        for rate in map(float, options.rates.split(",")):
            for alike in (False, True) if rate else (False,):
                key = f"{name} {rate:.0%} {'alike' if alike else 'random'}"
                rows = results.setdefault(key, [])
                for seed in range(len(rows), options.seeds):
                    noisy = NoisyClasses(*content, rate, alike, seed)
                    right[seed] = right.get(seed) or noisy.head(noisy.true)
                    rows.append(noisy.figures() | {"right": right[seed]})
                    if options.json is not None:
                        options.json.write_text(json.dumps(results) + "\n")
                shown(key, rows)


if __name__ == "__main__":
    main()
