"""Do the chances of an answer hold where several photos of one thing ask together? They are measured with single ones.

python -m benchmarks.several_photos NAME=FOLDER NAME=FOLDER [NAME=FOLDER …] [--divisions 10]

As in `benchmarks.verdicts`: vectors whitened on half of the classes of a folder, half of the others calibrate, and the
rest is there with no photo, one, three, or all. Six photos of every class are kept out of the index; one, two or three
of them ask, as the mean of their vectors, which is what `asking` judges. Strangers are as many photos of one class of
another folder. Absent classes have half of the weight.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from benchmarks.calibration_error import Error
from benchmarks.verdicts import FACTS, KNOWN, calibrating, features, nearest, network, unit, weights_of
from lookalike.models.whitening import whitening
from lookalike.search.calibration.chances import chances, looks_strange
from lookalike.search.calibration.foreign import Familiar, pictures
from lookalike.search.calibration.thresholds import calibrate
from lookalike.search.calibration.trials import STATES, Gallery, _hits, _ranks, judged, merged

HELD, ASKED, STRANGERS = 6, (1, 2, 3), 60
FIGURES = ("squared error", "chance", "right", "level", "sure", "sure and right", "kept", "strangers unknown")


def together(vectors: np.ndarray, classes: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Means of so many vectors of one class each, and the classes."""
    means, names = [], []
    for name in np.unique(classes):
        own = vectors[classes == name]
        for start in range(0, len(own) // number * number, number):
            means.append(own[start : start + number].mean(0))
            names.append(name)
    return unit(np.stack(means)), np.array(names)


def division(
    vectors: np.ndarray, codes: np.ndarray, others: tuple[np.ndarray, np.ndarray], drawn: np.ndarray, seed: int
) -> list[list[float]]:
    """The figures for each number of photos that ask."""
    generator, count = np.random.default_rng(seed), codes.max() + 1
    known = np.isin(codes, generator.permutation(count)[: count // 2])
    own = np.unique(codes[known], return_inverse=True)[1]
    batches, some, _ = calibrating(vectors[known], own, generator)
    familiar = Familiar.of(vectors[known][some], codes[known][some], drawn)
    calibration = calibrate(batches, familiar=familiar, **FACTS)
    models, least = calibration.models, np.inf if calibration.sure is None else calibration.sure
    assert models is not None
    new = generator.permutation(np.unique(codes[~known]))
    photos = np.full(count, KNOWN)
    photos[new] = np.array(STATES)[np.arange(len(new)) % len(STATES)]
    ranks = _ranks(codes, generator)
    asking, kept = ranks < HELD, (ranks >= HELD) & (ranks - HELD < photos[codes])
    strange = generator.permutation(np.unique(others[1]))[:STRANGERS]
    result = []
    for number in ASKED:
        queries, classes = together(vectors[asking], codes[asking], number)
        lost = [generator.permutation(np.flatnonzero(others[1] == name))[:number] for name in strange]
        foreign = unit(np.stack([others[0][rows].mean(0) for rows in lost]))
        every = np.concatenate([queries, foreign])
        near = nearest(vectors, every, np.full(len(every), -1), np.concatenate([classes, -1 - np.arange(len(foreign))]))
        gallery = Gallery(codes, lambda rows: vectors[rows], "sphere")
        states = np.concatenate([photos[classes], np.zeros(len(foreign), int)])
        worlds = [
            batch
            for state in (*STATES, KNOWN)
            for rows in (np.flatnonzero((states == state) & (near.classes >= 0)),)
            for batch in _hits(near, gallery, kept, rows, True, state)
        ]
        worlds += _hits(near, gallery, kept, np.flatnonzero(near.classes < 0), True, 0)
        trials = judged(merged(worlds), models.rule)
        match, chance, _ = chances(trials.evidence, models)
        unknown = looks_strange(trials.evidence, match, chance, models, every[trials.queries])
        inside = trials.classes >= 0
        weights, right, chance = weights_of(trials.photos[inside]), trials.right[inside], chance[inside]
        error = Error.of(chance, right, weights, trials.take(inside), np.ones((1, count)))
        sure = weights * (chance >= least)
        reached = not sure.any() or np.average(right, weights=sure) >= calibration.target
        means = (float(np.average(values, weights=weights)) for values in (chance, right))
        shares = (float((sure * values).sum() / weights.sum()) for values in (np.ones(len(right)), right))
        result.append([error.value, *means, calibration.target, *shares, float(reached), unknown[~inside].mean()])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--divisions", type=int, default=10)
    options = parser.parse_args()
    raw = {name: features(Path(place)) for name, place in (text.split("=", 1) for text in options.places)}
    drawn = unit(network().encode(pictures(), backend="auto").numpy())
    for name, (rows, labels) in raw.items():
        taught = np.isin(labels, np.random.default_rng(7).permutation(labels.max() + 1)[: (labels.max() + 1) // 2])
        mean = unit(rows)[taught].mean(0)
        matrix = whitening(torch.from_numpy(unit(rows)[taught] - mean), torch.from_numpy(labels[taught])).numpy()
        other, other_labels = raw[next(one for one in raw if one != name)]
        vectors, others, nothing = (unit((some - mean) @ matrix) for some in (unit(rows)[~taught], unit(other), drawn))
        codes = np.unique(labels[~taught], return_inverse=True)[1]
        divisions = [
            division(vectors, codes, (others, other_labels), nothing, seed) for seed in range(options.divisions)
        ]
        for place, number in enumerate(ASKED):
            values = dict(zip(FIGURES, np.mean([one[place] for one in divisions], axis=0).tolist(), strict=True))
            error = max(0.0, values.pop("squared error")) ** 0.5
            shown = ", ".join(f"{figure} {value:.3f}" for figure, value in values.items())
            print(f"{name}, {number} of a thing ask: error {error:.3f}, {shown}", flush=True)


if __name__ == "__main__":
    main()
