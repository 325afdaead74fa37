"""Few labels, or none: what do groups that `lookalike discover` finds teach, on classes that nobody has seen?

python -m benchmarks.few_labels NAME=PLACE [NAME=PLACE …] [--seeds 5] [--json FILE]

Places, photos per class, halves of classes and the head are those of benchmarks.learning_from_noise. The photos of the
learning half lose their labels; four photos of ten classes, or of every class, keep theirs, and the rest is grouped by
frozen features, centred, with these as known classes. Readouts that need no training are fitted to what is known:
whitened features, and a head. Figures are recall@1 and map@r on the other half of the classes less those of the frozen
features, means over seeds with a 95% interval (Student's t). "Confident": only photos that are nearer to their own
group than to the next.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.learning_from_noise import METRICS, NoisyClasses, features
from benchmarks.questions import interval
from lookalike.discover.grouping import hierarchy
from lookalike.evaluation import evaluate
from lookalike.fit import readouts
from lookalike.fit.prepare import LabelledFeatures

FEW, CLASSES = 4, 10  # labelled photos of a class, and labelled classes
SHOWN = {"whitened features": "whitened", "head on the features": "head"}


class FewLabels:
    """The readouts of what is known of the learning half."""

    def __init__(self, rows: np.ndarray, labels: np.ndarray, seed: int) -> None:
        self.half = NoisyClasses(rows, labels, 0.0, False, seed)
        self.draw = np.random.default_rng(seed)
        directions = torch.nn.functional.normalize(self.half.points)
        self.vectors = (directions - directions.mean(0)).numpy()
        self.true = self.half.true.numpy()

    def figures(self) -> dict[str, Any]:
        count = int(self.true.max()) + 1
        none = np.full(len(self.true), -1)
        some, every = self.labelled(self.draw.permutation(count)[:CLASSES]), self.labelled(np.arange(count))
        result = {"frozen": self.judged(self.half.unseen)}
        for name, known in (("no labels", none), ("4 photos of 10 classes", some), ("4 photos of all", every)):
            if (known >= 0).any():
                result |= self.fitted(f"{name}, alone", known, known >= 0)
            found = hierarchy(self.vectors, known)
            groups = found.at(found.suggested())
            grouped = groups.groups >= 0
            result |= self.fitted(f"{name}, groups", groups.groups, grouped)
            sure = grouped & ((groups.nearer >= 0) | (known >= 0))
            result |= self.fitted(f"{name}, confident groups", groups.groups, sure)
        return result | self.fitted("all labels", self.true, none < 0)

    def labelled(self, classes: np.ndarray) -> np.ndarray:
        """The labels of a few photos of these classes, −1 for all others."""
        known = np.full(len(self.true), -1)
        for label in classes:
            known[self.draw.permutation(np.flatnonzero(self.true == label))[:FEW]] = label
        return known

    def fitted(self, name: str, labels: np.ndarray, rows: np.ndarray) -> dict[str, Any]:
        half = self.half
        taught = LabelledFeatures(half.points, torch.from_numpy(labels)).of(torch.from_numpy(rows))
        each = readouts.with_own_head(half.recipe, half.model, taught)
        return {
            f"{name}: {SHOWN[fit.name]}": self.judged(fit.vectors(half.model, half.unseen))
            for fit in each
            if fit.name in SHOWN
        }

    def judged(self, vectors: torch.Tensor) -> dict[str, float]:
        result = evaluate(vectors, self.half.codes, metrics=METRICS, normalise="sphere")
        return {metric: result[metric] for metric in METRICS}


def shown(name: str, rows: list[dict[str, Any]]) -> None:
    frozen = ", ".join(f"{metric} {interval([row['frozen'][metric] for row in rows])}" for metric in METRICS)
    print(f"{name}: {len(rows)} seeds, frozen features {frozen}")
    for way in rows[0]:
        there = [row for row in rows if way in row]
        gains = [
            f"{metric} {interval([row[way][metric] - row['frozen'][metric] for row in there])}" for metric in METRICS
        ]
        if way != "frozen":
            print(f"  {way:44} {'  '.join(gains)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", metavar="NAME=PLACE")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = json.loads(options.json.read_text()) if options.json is not None and options.json.is_file() else {}
    for name, place in (text.split("=", 1) for text in options.places):
        content, rows = features(place), results.setdefault(name, [])
        for seed in range(len(rows), options.seeds):
            rows.append(FewLabels(*content, seed).figures())
            if options.json is not None:
                options.json.write_text(json.dumps(results) + "\n")
        shown(name, rows)


if __name__ == "__main__":
    main()
