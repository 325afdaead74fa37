"""Wrong labels: are they found, and is their share?

python -m benchmarks.label_noise NAME=PLACE [NAME=PLACE …] [--seeds 3] [--classes 40] [--json FILE]

Places are those of benchmarks.discover. Of the unseen classes the first 40 get wrong labels: 10, 20 and 40% of them,
at random or of one of the three classes that look most alike. Figures: the average precision of the ranking by
`lookalike audit --labels`, beside that of confident learning (Northcutt, Jiang, Chuang, JAIR 2021) as cleanlab ranks by
default, self-confidence p(given label), with its usual probabilities: logistic regression, five folds, on 128 principal
components of the same vectors; the share of wrong labels, between which bounds it is said to lie, and the share by the
confident joint. What wrong labels cost a model, and what leaving doubts out brings: benchmarks.learning_from_noise.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.discover import read
from benchmarks.verdicts import unit
from lookalike.data.audit.label_noise import label_chances, wrong_labels

RATES = (0.1, 0.2, 0.4)
ALIKE = 3  # classes that a wrong label is drawn from
AXES, FOLDS = 128, 5


def spoilt(vectors: np.ndarray, labels: np.ndarray, rate: float, alike: bool, seed: int) -> np.ndarray:
    """Labels of which a share is wrong."""
    draw, classes = np.random.default_rng(seed), int(labels.max()) + 1
    means = np.zeros((classes, vectors.shape[1]))
    np.add.at(means, labels, vectors)
    near = unit(means) @ unit(means).T
    np.fill_diagonal(near, -2)
    order = np.argsort(-near, axis=1)[:, :ALIKE]
    rows = draw.permutation(len(labels))[: int(rate * len(labels))]
    result = labels.copy()
    shifted = (labels[rows] + draw.integers(1, classes, len(rows))) % classes
    result[rows] = order[labels[rows], draw.integers(ALIKE, size=len(rows))] if alike else shifted
    return result


def confident_learning(vectors: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, float]:
    """Self-confidence of every label, and the share of wrong ones by the confident joint."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    centred = vectors - vectors.mean(0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:AXES]
    rows = centred @ axes.T
    rows /= rows.std()
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        chances = cross_val_predict(LogisticRegression(max_iter=100), rows, labels, cv=folds, method="predict_proba")
    own = chances[np.arange(len(labels)), labels]
    thresholds = np.array([own[labels == label].mean() for label in range(int(labels.max()) + 1)])
    confident = np.where(chances >= thresholds, chances, -1.0)
    counted = confident.max(1) >= 0
    return own, float((confident.argmax(1) != labels)[counted].mean())


def measured(vectors: np.ndarray, labels: np.ndarray, rate: float, alike: bool, seed: int, classes: int) -> Any:
    from sklearn.metrics import average_precision_score

    some = labels < classes
    rows, true = vectors[some], labels[some]
    given = spoilt(rows, true, rate, alike, seed)
    wrong, tensors = given != true, (torch.from_numpy(rows), torch.from_numpy(given))
    chances, share = label_chances(*tensors), wrong_labels(*tensors)
    own, joint = confident_learning(rows, given)
    return {
        "precision": float(average_precision_score(wrong, -chances.own.numpy())),
        "confident learning": float(average_precision_score(wrong, -own)),
        "low": share.low,
        "high": share.high,
        "joint": joint,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", metavar="NAME=PLACE")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--classes", type=int, default=40)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = json.loads(options.json.read_text()) if options.json is not None and options.json.is_file() else {}
    for name, place in (text.split("=", 1) for text in options.places):
        vectors, labels = read(Path(place))
        classes = min(options.classes, int(labels.max()) // 2)
        for alike in (False, True):
            for rate in RATES:
                rows = results.setdefault(f"{name} {'alike' if alike else 'random'} {rate:.0%}", [])
                for seed in range(len(rows), options.seeds):
                    rows.append(measured(vectors, labels, rate, alike, seed, classes))
                    if options.json is not None:
                        options.json.write_text(json.dumps(results) + "\n")
                means = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
                words = "  ".join(f"{key} {value:.3f}" for key, value in means.items())
                print(f"{name} {'alike' if alike else 'random'} {rate:.0%}: {words}", flush=True)


if __name__ == "__main__":
    main()
