"""Which question next? Groups of unseen classes after n answers of a simulated person who knows every class.

python -m benchmarks.questions NAME=PLACE [NAME=PLACE …] [--answers 100] [--seeds 10] [--recall] [--json FILE]
python -m benchmarks.questions --rows 100000

A PLACE is what `python -m benchmarks.discover` takes. A seed draws two thirds of the photos; groups are those that
`lookalike discover` suggests, and the three ways ask about the same groups: "gain" is what `lookalike ask` does,
"uncertainty" asks where the same chance is nearest to one half, and "random" draws from the same candidates, which are
neighbouring groups already: drawn from all pairs of groups, nearly every answer would be "different". Figures are ARI
of all photos, each in no group counted as one of its own. "Needs": the answers after which a way is first as good as
random questions are after all of theirs, as a share; the mean over seeds with a 95% interval (Student's t). --recall
also teaches a model, the whitening that `fit` delivers where nobody gave a label, by the groups before any answer,
after half and after all, and measures the recall@1 of the other third of the photos among themselves.

--rows measures instead the processor time of the page after an answer, until groups, table and the next question
follow: random kinds of 20 vectors of 128 dimensions, noisy enough that some are in no group.
"""

import argparse
import json
import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from benchmarks.discover import of_all, read
from benchmarks.verdicts import unit
from lookalike.discover.beginning import begin
from lookalike.discover.gain import JudgedGroups, Likeness, OpenQuestions
from lookalike.discover.grouping import APART, hierarchy
from lookalike.discover.mending import MendedGroups
from lookalike.discover.photos import Photos
from lookalike.discover.review.desk import Desk
from lookalike.discover.review.view import Word
from lookalike.evaluation import evaluate
from lookalike.models.whitening import whitening

WAYS = ("gain", "uncertainty", "random")
NOISE, KIND = 1.5, 20  # of the vectors whose time is taken, and how many are of one kind


def chosen(way: str, found: OpenQuestions, draw: np.random.Generator) -> int:
    if way == "random":
        return int(draw.integers(len(found.pairs)))
    worth = found.gain if way == "gain" else -np.abs(found.chance - 0.5)
    return int(worth.argmax())


def asked(
    way: str, like: Likeness, groups: np.ndarray, labels: np.ndarray, answers: int, seed: int
) -> tuple[list[float], list[np.ndarray]]:
    """ARI before the first answer and after each, and the groups before any answer, after half and after all."""
    mended, judged, draw = MendedGroups(groups, {}), list[JudgedGroups](), np.random.default_rng(seed)
    result, kept = [of_all(mended.groups, labels)], [mended.groups.copy()]
    for number in range(1, answers + 1):
        found = like.open_questions(mended, judged)
        if len(found.pairs):
            place = chosen(way, found, draw)
            left, right = found.pairs[place].tolist()
            same = bool(labels[left] == labels[right])
            mended.apply({"do": "same" if same else "different", "left": left, "right": right})
            judged.append(JudgedGroups((float(found.seen[place, 0]), float(found.seen[place, 1])), same))
        result.append(of_all(mended.groups, labels))
        if number in (answers // 2, answers):
            kept.append(mended.groups.copy())
    return result, kept


def recall(vectors: np.ndarray, labels: np.ndarray, taught: np.ndarray, groups: np.ndarray) -> float:
    """Of photos among themselves, whitened on the groups of others."""
    grouped, mean = groups >= 0, taught.mean(0)
    matrix = whitening(torch.from_numpy(taught[grouped] - mean), torch.from_numpy(groups[grouped]))
    result = evaluate(torch.from_numpy(vectors - mean) @ matrix, torch.from_numpy(labels), metrics=("recall@1",))
    return float(result["recall@1"])


def one_seed(
    vectors: np.ndarray, labels: np.ndarray, answers: int, seed: int, teach: bool = False
) -> dict[str, list[float]]:
    order = np.random.default_rng(seed).permutation(len(vectors))
    rows, others = np.split(order, [2 * len(vectors) // 3])
    rows = np.sort(rows)
    whole = hierarchy(vectors[rows])
    level = whole.suggested()
    like = Likeness(whole.vectors, whole.nearest, level, whole.random)
    groups = whole.at(level).groups
    result = {}
    for way in WAYS:
        result[way], kept = asked(way, like, groups, labels[rows], answers, seed)
        if teach:
            result[f"{way}, recall"] = [recall(vectors[others], labels[others], vectors[rows], each) for each in kept]
    return result


def needs(curve: list[float], goal: float) -> float:
    """The first share of all answers with the goal; 2 where it is never reached."""
    reached = np.flatnonzero(np.array(curve) >= goal)
    return float(reached[0]) / (len(curve) - 1) if len(reached) else 2.0


def interval(values: list[float]) -> str:
    from scipy import stats

    mean = float(np.mean(values))
    if len(values) < 2:
        return f"{mean:.3f}"
    half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return f"{mean:.3f} [{mean - half:.3f}, {mean + half:.3f}]"


def shown(name: str, runs: list[dict[str, list[float]]]) -> None:
    print(f"{name}: {len(runs)} seeds, ARI before any answer {interval([run['random'][0] for run in runs])}")
    for way in WAYS:
        share = interval([needs(run[way], run["random"][-1]) for run in runs])
        half = interval([run[way][len(run[way]) // 2] for run in runs])
        print(f"  {way:12} after half {half}  after all {interval([run[way][-1] for run in runs])}  needs {share}")
    for way in WAYS if "random, recall" in runs[0] else ():
        figures = np.array([run[f"{way}, recall"] for run in runs])
        half, whole = (interval((figures[:, at] - figures[:, 0]).tolist()) for at in (1, 2))
        before = interval(figures[:, 0].tolist())
        print(f"  {way:12} recall@1 before {before}, more after half {half}, after all {whole}")


def timed(rows: int, width: int = 128, answers: int = 6) -> None:
    """Processor-seconds from an answer to the next question."""
    draw = np.random.default_rng(0)
    centres = np.repeat(draw.normal(size=(rows // KIND, width)), KIND, 0)
    vectors = unit((centres + NOISE * draw.normal(size=centres.shape)).astype(np.float32))
    photos = Photos([f"{row}.jpg" for row in range(len(vectors))], vectors, [None] * len(vectors), "sphere")
    with TemporaryDirectory() as folder:
        begin(Path(folder) / "photos.review", photos, hierarchy(vectors), "")
        desk, taken = Desk(Path(folder) / "photos.review"), []
        for _ in range(answers):
            began = time.process_time()
            desk.say(Word(version=desk.session.version, do="different"))
            desk.show(20)
            taken.append(time.process_time() - began)
        groups, memory = desk.session.mended.groups, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{len(vectors):,} × {width}: {np.median(taken):.2f} processor-seconds per answer, {min(taken):.2f} to "
            f"{max(taken):.2f}; {groups.max() + 1:,} groups, {(groups == APART).mean():.0%} in none; "
            f"peak {memory:,.0f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", metavar="NAME=PLACE")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--answers", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--recall", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.rows is not None:
        timed(options.rows)
    results: dict[str, Any] = {}
    for text in options.places:
        name, place = text.split("=", 1)
        vectors, labels = read(Path(place))
        runs = results.setdefault(name, [])
        for seed in range(options.seeds):
            runs.append(one_seed(vectors, labels, options.answers, seed, options.recall))
        shown(name, runs)
        if options.json is not None:
            options.json.write_text(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
