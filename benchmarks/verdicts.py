"""Can answers be believed on classes that calibration has not seen? Random divisions of the classes of photo sets.

python -m benchmarks.verdicts NAME=PLACE [NAME=PLACE …] [--only NAME …] [--divisions 100] [--json FILE]

A PLACE is the folder of a run (its test classes in the geometry of its model) or a folder of photos (EfficientNet-lite0
at 224 pixels, whitened on half of its classes, the other half is used). One half of the classes is in the index and
calibrates it: the known ones. Then those of the other half are added, in turn with one photo, with three, with all, or
not at all, and asked; so are known ones, and photos of the other places, the strangers. Beside it stands the rule of
version 0.2.0: the label of the nearest hit, judged by the same evidence on whole classes.

Errors of calibration are root mean squares over ten bins of equal mass, without bias: the mean product of the gaps of
two trials in a bin that share no class, asked or answered, and so are independent (Kumar, Liang, Ma, NeurIPS 2019,
subtract the variance, which few classes understate); averaged over divisions before the root, with 95% intervals by
resampling the classes asked; groups are by how many photos the class has that answers. "Area" tells present from
absent classes by a score; "caught" are the strangers below the score of all but 5% of the queries whose class is
there: candidates, of which one would know the best in hindsight only. The others are intervals over divisions.
"Sure kept": the share of divisions in which sure answers are right as often as was promised by default, those without
sure answers included; 0.2.0 promises the same level. "Unanswered": among queries whose nearest hit is right, those that
get no right answer at the precision that 0.2.0 has with all it calls sure or maybe; "fewer unanswered" is the
difference in pairs, and what is left of it beyond a quarter of those of 0.2.0. "Sharpness": the standard deviation of
the chance. "Sure right": the share of right answers among sure ones, by how many photos the class has that answers.
Absent classes have half of the weight, the three sizes a sixth each.
Every division is a line of FILE; what it holds already is not measured again.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.calibration_error import BINS, Error
from lookalike.search.calibration import logistic
from lookalike.search.calibration.chances import FALSE_ALARMS, chances, looks_strange
from lookalike.search.calibration.evidence import IN_0_2_0
from lookalike.search.calibration.foreign import Familiar, familiarity, pictures
from lookalike.search.calibration.reliability import Curve, Judgements, lowest_reliable
from lookalike.search.calibration.thresholds import Calibration, calibrate
from lookalike.search.calibration.trials import (
    ALL,
    DEPTH,
    STATES,
    Gallery,
    TrialBatch,
    TrialNeighbours,
    Trials,
    _hits,
    _of_due_classes,
    _ranks,
    draw,
    judged,
    merged,
    shuffled,
)

FACTS: dict[str, Any] = {"items": 0, "generation": 1, "date": "", "source": "run"}
MOST, LOST, KNOWN = 1000, 400, ALL + 1
COPIES = 100  # resamplings of the classes
GROUPS = {"1 photo": (1, 1), "2 or 3": (2, 3), "more": (4, ALL)}
ASKED = {"known": KNOWN, "1": 1, "3": 3, "all": ALL}
Figures = dict[str, float | list[float]]


def nearest(vectors: np.ndarray, queries: np.ndarray, itself: np.ndarray, classes: np.ndarray) -> TrialNeighbours:
    """The first hits of every query in the whole gallery."""
    apart = -(queries @ vectors.T)
    apart[np.flatnonzero(itself >= 0), itself[itself >= 0]] = np.inf
    depth = min(2 * DEPTH, apart.shape[1])
    some = np.argpartition(apart, depth - 1, axis=1)[:, :depth]
    order = np.argsort(np.take_along_axis(apart, some, 1), axis=1, kind="stable")
    places = np.take_along_axis(some, order, 1)
    return TrialNeighbours(-np.take_along_axis(apart, places, 1).astype(np.float64), places, classes, itself)


def calibrating(
    vectors: np.ndarray, codes: np.ndarray, generator: np.random.Generator
) -> tuple[list[TrialBatch], np.ndarray, Any]:
    """Trials of the known half as an index calibrates itself now, who is asked in them, and trials as in 0.2.0."""
    chosen = np.sort(generator.permutation(len(vectors))[:MOST])
    strangers = shuffled(vectors, "sphere")
    itself = np.concatenate([chosen, np.full(len(strangers), -1)])
    classes = np.concatenate([codes[chosen], -1 - np.arange(len(strangers))])
    near = nearest(vectors, np.concatenate([vectors[chosen], strangers]), itself, classes)
    gallery = Gallery(codes, lambda rows: vectors[rows], "sphere")
    every, known = np.ones(len(codes), bool), np.arange(len(chosen))
    earlier = list(_hits(near, gallery, every, known, True, ALL))
    for name in np.unique(codes):
        earlier += _hits(near, gallery, codes != name, known[codes[chosen] == name], True, 0)
    return draw(near, gallery), chosen, judged(merged(earlier), None)


def version_0_2_0(trials: Any, target: float) -> tuple[tuple[float, ...], float | None, float]:
    """Weights of the evidence, and from which chance on an answer was sure and maybe."""
    right, rows, ones = trials.nearest == trials.classes, trials.evidence[:, :IN_0_2_0], np.ones(len(trials.classes))
    weights = logistic.fit(rows, right, ones, ridge=1.0)
    scores = logistic.chance(rows, weights)
    curve = Curve.of(Judgements(trials.classes, trials.nearest, trials.present, ones), scores)
    sure = lowest_reliable(curve, target, doubt=1.2816)[0]
    order = np.argsort(scores, kind="stable")
    likely = np.flatnonzero(_isotonic(right[order].astype(float)) >= 0.5)
    maybe = float(scores[order][likely[0]]) if len(likely) else float(scores.max())
    return weights, sure, maybe if sure is None else min(maybe, sure)


def _isotonic(values: np.ndarray) -> np.ndarray:
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        means.append(value)
        sizes.append(1)
        while len(means) > 1 and means[-2] >= means[-1]:
            size = sizes[-2] + sizes[-1]
            means[-2:] = [(means[-2] * sizes[-2] + means[-1] * sizes[-1]) / size]
            sizes[-2:] = [size]
    return np.repeat(means, sizes)


def questions(
    vectors: np.ndarray, codes: np.ndarray, known: np.ndarray, strangers: np.ndarray, generator: np.random.Generator
) -> tuple[list[TrialBatch], np.ndarray]:
    """New classes in turn absent, with one photo, three and all, beside the known ones; photos=KNOWN: of these.

    And the vectors of all queries.
    """
    new = np.flatnonzero(~known)
    old = generator.permutation(np.flatnonzero(known))[: MOST // 4]
    rows = np.concatenate([generator.permutation(new)[:MOST], old])
    itself = np.concatenate([rows, np.full(len(strangers), -1)])
    classes = np.concatenate([codes[rows], -1 - np.arange(len(strangers))])
    queries = np.concatenate([vectors[rows], strangers])
    near = nearest(vectors, queries, itself, classes)
    gallery = Gallery(codes, lambda places: vectors[places], "sphere")
    names = generator.permutation(np.unique(codes[new]))
    batches: list[TrialBatch] = []
    for turn in range(len(STATES)):
        photos = np.full(codes.max() + 1, KNOWN)
        photos[names] = np.array(STATES)[(np.arange(len(names)) + turn) % len(STATES)]
        kept = _ranks(codes, generator) < photos[codes]
        batches += _of_due_classes(near, gallery, kept, photos, photos < KNOWN, True, np.arange(len(classes)))
        share = np.flatnonzero(known[rows])[turn :: len(STATES)]
        batches += _hits(near, gallery, kept, share, True, KNOWN)
        batches += _hits(near, gallery, kept, np.flatnonzero(classes < 0)[turn :: len(STATES)], True, 0)
    return merged(batches), queries


def weights_of(photos: np.ndarray) -> np.ndarray:
    weights = np.zeros(len(photos))
    for state, share in ((0, 1 / 2), (1, 1 / 6), (3, 1 / 6), (ALL, 1 / 12), (KNOWN, 1 / 12)):
        weights[photos == state] = share / max(1, (photos == state).sum())
    return np.asarray(weights / weights.mean())


def diagram(chance: np.ndarray, true: np.ndarray, weights: np.ndarray) -> list[float]:
    """The mass, the chance and the share of right answers in every tenth of the chance, as sums one after another."""
    bins = np.minimum((chance * BINS).astype(int), BINS - 1)
    sums = (np.bincount(bins, weights * values, BINS) for values in (np.ones(len(bins)), chance, true))
    return [float(value) for row in sums for value in row]


def area(higher: np.ndarray, lower: np.ndarray) -> float:
    """The chance that one of `higher` is above one of `lower`; equal ones count half."""
    both = np.sort(lower)
    left, right = np.searchsorted(both, higher, "left"), np.searchsorted(both, higher, "right")
    return float((left + right).mean() / 2 / len(lower))


def share(some: np.ndarray, weights: np.ndarray) -> float:
    return float(np.average(some, weights=weights)) if len(some) else float("nan")


def candidates(evidence: np.ndarray) -> dict[str, np.ndarray]:
    """Scores that need no fit."""
    return {
        "best hit": evidence[:, 0] + evidence[:, 24],
        "first ten": evidence[:, 3],
        "lead": evidence[:, 20],
        "share": evidence[:, 21],
        "agreement": evidence[:, 14],
        "outside the class": evidence[:, 8] - evidence[:, 9],
        "outside the neighbours": evidence[:, 0] - evidence[:, 10],
    }


def division(vectors: np.ndarray, codes: np.ndarray, strangers: np.ndarray, drawn: np.ndarray, seed: int) -> Figures:
    """The figures of one division; `drawn`: the pictures of nothing that calibration sees, as vectors."""
    generator = np.random.default_rng(seed)
    known = np.isin(codes, generator.permutation(codes.max() + 1)[: (codes.max() + 1) // 2])
    batches, some, before = calibrating(vectors[known], np.unique(codes[known], return_inverse=True)[1], generator)
    familiar = Familiar.of(vectors[known][some], codes[known][some], drawn)
    calibration = calibrate(batches, familiar=familiar, **FACTS)
    weights0, sure0, maybe0 = version_0_2_0(before, calibration.target)
    lost = strangers[generator.permutation(len(strangers))[:LOST]]
    worlds, queries = questions(vectors, codes, known, lost, generator)
    copies = np.random.default_rng(1).multinomial(codes.max() + 1, [1 / (codes.max() + 1)] * (codes.max() + 1), COPIES)
    models = calibration.models
    assert models is not None
    trials, plain = judged(worlds, models.rule), judged(worlds, None)
    match, chance, _ = chances(trials.evidence, models)
    inside = trials.classes >= 0
    strange = looks_strange(trials.evidence, match, chance, models, queries[trials.queries])
    result: Figures = {
        "strangers unknown": float(strange[~inside].mean()),
        "strangers likely": float((chance[~inside] >= 0.5).mean()),
        "strangers sure": float((chance[~inside] >= (np.inf if calibration.sure is None else calibration.sure)).mean()),
    }
    scores = candidates(trials.evidence)
    far = {"match": match, "familiarity": familiarity(queries, models.direction)[trials.queries]} | scores
    for name, values in far.items():
        alarm = np.quantile(values[inside & trials.present], FALSE_ALARMS)
        result[f"caught by {name}"] = float((values[~inside] < alarm).mean())
    scores = {name: values[inside] for name, values in scores.items()}
    strange = strange[inside]
    rows = {"match": match, "chance": chance, "chance0": logistic.chance(plain.evidence[:, :IN_0_2_0], weights0)}
    rows = {name: values[inside] for name, values in rows.items()}
    trials, plain = trials.take(inside), plain.take(inside)
    weights, there, right, right0 = (
        weights_of(trials.photos),
        trials.present,
        trials.right,
        plain.nearest == plain.classes,
    )
    result["false alarms"] = share(strange[there], weights[there])
    for name, state in ASKED.items():
        result[f"false alarms, {name}"] = float(strange[trials.photos == state].mean())
    result["absent unknown"] = share(strange[~there], weights[~there])
    rows["hindsight"] = logistic.crossed(trials.evidence, there, weights, trials.classes)[1]
    named = {"a fit to them": rows["hindsight"], "chance": rows["chance"], "0.2.0": rows["chance0"]} | scores
    result["area"] = area(rows["match"][there], rows["match"][~there])
    for name, values in named.items():
        result[f"area by {name}"] = area(values[there], values[~there])
    result |= _errors(rows, trials, weights, copies)
    nearest_label = replace(plain, answers=plain.nearest)
    result["error, 0.2.0"] = Error.of(rows["chance0"], right0, weights, nearest_label, copies).value
    result["sharpness"] = float(
        np.average((rows["chance"] - np.average(rows["chance"], weights=weights)) ** 2, weights=weights) ** 0.5
    )
    result |= _labels(trials, right0)
    result |= _sure(calibration, rows["chance"], weights, trials)
    accepted = rows["chance0"] >= (np.inf if sure0 is None else sure0)
    kept = not accepted.any() or share(right0[accepted], weights[accepted]) >= calibration.target
    result["sure kept, 0.2.0"] = float(kept)
    result["sure, 0.2.0"] = float((weights * (accepted & right0)).sum() / weights[there].sum())
    return result | _unanswered(rows, right, right0, weights, maybe0)


def _grouped(trials: Trials) -> dict[str, np.ndarray]:
    """Trials by how many photos the class has that answers."""
    size = np.exp(trials.evidence[:, IN_0_2_0]).round()
    return {name: (size >= least) & (size <= most) for name, (least, most) in GROUPS.items()}


def _errors(rows: dict[str, np.ndarray], trials: Trials, weights: np.ndarray, copies: np.ndarray) -> Figures:
    every, right = np.ones(len(weights), bool), trials.right
    errors = {"error": ("chance", right, every), "error of match": ("match", trials.present, every)}
    errors |= {f"error, {name}": ("chance", right, some) for name, some in _grouped(trials).items()}
    result: Figures = {}
    for name, (score, true, some) in errors.items():
        found = Error.of(rows[score][some], true[some], weights[some], trials.take(some), copies)
        result |= {name: found.value, f"{name}, copies": found.copies}
    for name, some in _grouped(trials).items():
        result[f"{name}, diagram"] = diagram(rows["chance"][some], right[some], weights[some])
    return result


def _labels(trials: Trials, right0: np.ndarray) -> Figures:
    """How often the label is right, and the nearest hit."""
    result: Figures = {}
    for name, state in ASKED.items():
        some = trials.photos == state
        result |= {
            f"label right, {name}": float(trials.right[some].mean()),
            f"nearest right, {name}": float(right0[some].mean()),
            f"label gains, {name}": float((trials.right[some].astype(float) - right0[some]).mean()),
        }
    return result


def _sure(calibration: Calibration, chance: np.ndarray, weights: np.ndarray, trials: Trials) -> Figures:
    right, there = trials.right, trials.present
    accepted = chance >= (np.inf if calibration.sure is None else calibration.sure)
    result: Figures = {
        "level": calibration.target,
        "sure never": float(calibration.sure is None),
        "sure kept": float(not accepted.any() or share(right[accepted], weights[accepted]) >= calibration.target),
        "sure": float((weights * (accepted & right)).sum() / weights[there].sum()),
    }
    for name, group in _grouped(trials).items():
        some = accepted & group
        result[f"sure right, {name}"] = share(right[some], weights[some])
    return result


def _unanswered(
    rows: dict[str, np.ndarray], right: np.ndarray, right0: np.ndarray, weights: np.ndarray, maybe0: float
) -> Figures:
    """Right answers that go unanswered, by 0.2.0 and now at its precision."""
    answered0 = rows["chance0"] >= maybe0
    precision = share(right0[answered0], weights[answered0])
    order = np.argsort(-rows["chance"], kind="stable")
    precise = (weights * right)[order].cumsum() / weights[order].cumsum() >= precision
    answered = np.zeros(len(order), bool)
    answered[order[: np.flatnonzero(precise)[-1] + 1 if precise.any() else 0]] = True
    total = (weights * right0).sum()
    return {
        "precision, 0.2.0": precision,
        "unanswered, 0.2.0": float((weights * (right0 & ~answered0)).sum() / total),
        "unanswered": float((weights * (right0 & ~(answered & right))).sum() / total),
        "answered rightly, 0.2.0": float((weights * (right0 & answered0)).sum() / weights.sum()),
        "answered rightly": float((weights * (right & answered)).sum() / weights.sum()),
    }


def derived(row: dict[str, Any]) -> Figures:
    """What follows from the figures of a division: promises where any is sure, and what more 0.2.0 left unanswered."""
    before, now = row["unanswered, 0.2.0"], row["unanswered"]
    return {
        "sure kept, where any is sure": float("nan") if row["sure never"] else row["sure kept"],
        "fewer unanswered": before - now,
        "fewer unanswered, beyond a quarter": 0.75 * before - now,
    }


def summary(rows: list[Figures]) -> dict[str, tuple[float, float, float]]:
    """Means over divisions with 95% intervals; of squared errors the root."""
    found = {}
    for name in (name for name, value in rows[0].items() if not isinstance(value, list)):
        values = np.array([row[name] for row in rows], float)
        values = values[np.isfinite(values)]
        mean = float(values.mean()) if len(values) else float("nan")
        spread = 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else float("nan")
        low, high = mean - spread, mean + spread
        if f"{name}, copies" in rows[0]:
            low, high = np.quantile(np.mean([row[f"{name}, copies"] for row in rows], axis=0), (0.025, 0.975))
        if name.startswith("error"):
            mean, low, high = (float(np.sqrt(max(value, 0.0))) for value in (mean, low, high))
        found[name] = mean, float(low), float(high)
    return found


def unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), np.float32)


def features(place: Path) -> tuple[np.ndarray, np.ndarray]:
    """Those of a folder of photos, from the cache where they are there."""
    from lookalike import data
    from lookalike.features import extract

    photos = data.load(str(place))
    return extract(network(), photos, backend="auto").numpy(), photos.labels.numpy()


def network() -> Any:
    """EfficientNet-lite0 without a head, at 224 pixels."""
    from lookalike.models import Architecture, Model

    model = Model.create(Architecture("efficientnet_lite0", dim=128, batch_norm="frozen_statistics"), "pretrained")
    return replace(model, preprocessing=model.preprocessing.sized(224, 256)).headless()


def read_sets(places: dict[str, Path]) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Vectors, classes, strangers and pictures of nothing of every set."""
    import torch

    from lookalike import data
    from lookalike.features import extract
    from lookalike.models import Model
    from lookalike.models.whitening import whitening

    raw = {name: features(place) for name, place in places.items() if not (place / "test.npz").is_file()}
    few = {name: rows[np.random.default_rng(1).permutation(len(rows))[:700]] for name, (rows, _) in raw.items()}
    drawn = network().encode(pictures(), backend="auto").numpy() if raw else np.zeros((0, 0))
    result = {}
    for name, place in places.items():
        if name in raw:
            rows, labels = raw[name]
            taught = np.isin(labels, np.random.default_rng(7).permutation(labels.max() + 1)[: (labels.max() + 1) // 2])
            mean = unit(rows)[taught].mean(0)
            matrix = whitening(torch.from_numpy(unit(rows)[taught] - mean), torch.from_numpy(labels[taught])).numpy()
            strangers = np.concatenate([some for other, some in few.items() if other != name])
            vectors, others, nothing = (
                unit((unit(some) - mean) @ matrix) for some in (rows[~taught], strangers, drawn)
            )
            result[name] = vectors, np.unique(labels[~taught], return_inverse=True)[1], others, nothing
        else:
            with np.load(place / "test.npz", allow_pickle=False) as content:
                vectors, labels = unit(content["embeddings"].astype(np.float32)), content["labels"]
            model, seen = Model.load(place / "model"), []
            for other in raw:
                photos = data.load(str(places[other]))
                seen.append(
                    extract(
                        model, photos.subset(torch.arange(0, len(photos), len(photos) // 700)), backend="auto"
                    ).numpy()
                )
            nothing = unit(model.encode(pictures(), backend="auto").numpy())
            result[name] = vectors, np.unique(labels, return_inverse=True)[1], unit(np.concatenate(seen)), nothing
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", metavar="NAME=PLACE")
    parser.add_argument("--only", nargs="+", help="measure these sets; the others are strangers")
    parser.add_argument("--divisions", type=int, default=100)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    places = {name: Path(place) for name, place in (text.split("=", 1) for text in options.places)}
    for name, (vectors, codes, strangers, drawn) in read_sets(places).items():
        if options.only and name not in options.only:
            continue
        print(
            f"\n{name}: {len(vectors):,} photos of {codes.max() + 1:,} classes, {options.divisions} divisions",
            flush=True,
        )
        done = measured(options.json, name)
        for seed in (seed for seed in range(options.divisions) if seed not in done):
            done[seed] = division(vectors, codes, strangers, drawn, seed)
            if options.json is not None:
                with options.json.open("a") as lines:
                    lines.write(json.dumps({"set": name, "seed": seed, "figures": done[seed]}) + "\n")
            print(f"\r{len(done)}/{options.divisions} divisions", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        for figure, (value, low, high) in summary([row | derived(row) for row in done.values()]).items():
            print(f"{figure:34} {value:.3f} [{low:.3f}, {high:.3f}]", flush=True)


def measured(file: Path | None, name: str) -> dict[int, Figures]:
    """The divisions of a set that a file holds already, by their seeds."""
    lines = file.read_text().splitlines() if file is not None and file.is_file() else []
    rows = [json.loads(line) for line in lines]
    return {row["seed"]: row["figures"] for row in rows if row["set"] == name}


if __name__ == "__main__":
    main()
