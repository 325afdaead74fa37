"""Things beside photos: are things found more often when their photos are pooled, and what does it cost?

python -m benchmarks.things NAME=FOLDER [NAME=FOLDER …] [--divisions 20] [--json FILE]
python -m benchmarks.things --rows 1000000 [--at FOLDER]

A FOLDER of photos, one folder for each class (EfficientNet-lite0 at 224 pixels). In each division half of the classes,
chosen at random, whiten the vectors; the others are the things, each with 1, 2, 4 and 8 photos in the index. The rest
of their photos ask, one, two or three of a thing together. Every figure is the share of questions whose first thing is
the right one: by the best photo; as a difference to it, in pairs over divisions with an interval of two standard
errors, by the best two photos, by the rule that calibration chooses from the photos in the index, and by the best photo
where all of the query's photos are one vector, as version 0.2.0 asked. What FILE holds already is not measured again.

With --rows, drawn photos in an index, four of each thing, and the processor time of one search in turns: the ten
nearest photos, the ten nearest things by their best photo, and by their best two.
"""

import argparse
import json
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.verdicts import features, nearest, unit
from lookalike.models.whitening import whitening
from lookalike.search.calibration.pooling import compare_pooling
from lookalike.search.calibration.trials import Gallery
from lookalike.search.items import Identity, Item
from lookalike.search.quality import POOLED
from lookalike.search.stores.sqlite.store import SqliteStore
from lookalike.search.things import ThingSearch, hits_of

PHOTOS, ASKED = (1, 2, 4, 8), (1, 2, 3)
MOST = 24  # photos of a class that ask
WIDTH, BULK, OF_ONE, ASKING, HITS = 128, 20_000, 4, 200, 10


def pooled(similarities: np.ndarray, classes: np.ndarray, number: int) -> np.ndarray:
    """The score of every thing for every question: questions × query photos × photos of the index."""
    scores = np.empty((len(similarities), classes.max() + 1))
    for name in range(scores.shape[1]):
        best = -np.sort(-similarities[:, :, classes == name], axis=2)[:, :, :number]
        scores[:, name] = best.mean((1, 2))
    return scores


def two_speak(vectors: np.ndarray, codes: np.ndarray) -> bool:
    """What calibration with the photos of the index finds."""
    near = nearest(vectors, vectors, np.arange(len(vectors)), codes)
    trials = compare_pooling(near, Gallery(codes, lambda rows: vectors[rows], "sphere"))
    return bool(trials) and trials[-1].kept


def questions(rest: np.ndarray, codes: np.ndarray, asked: int, draw: np.random.Generator) -> np.ndarray:
    """Rows of photos that ask together, as many of each class as there are."""
    result = []
    for name in range(codes.max() + 1):
        own = draw.permutation(rest[codes[rest] == name])[:MOST]
        result.append(own[: len(own) // asked * asked].reshape(-1, asked))
    return np.concatenate(result)


def division(rows: np.ndarray, labels: np.ndarray, seed: int) -> dict[str, dict[str, float]]:
    """Recall@1 of each rule for each number of photos and of query photos."""
    draw = np.random.default_rng(seed)
    taught = np.isin(labels, draw.permutation(labels.max() + 1)[: (labels.max() + 1) // 2])
    mean = rows[taught].mean(0)
    matrix = whitening(torch.from_numpy(rows[taught] - mean), torch.from_numpy(labels[taught])).numpy()
    vectors = unit((rows[~taught] - mean) @ matrix)
    codes = np.unique(labels[~taught], return_inverse=True)[1]
    result = {}
    for photos in PHOTOS:
        order = draw.permutation(len(codes))
        kept = np.concatenate([order[codes[order] == name][:photos] for name in range(codes.max() + 1)])
        rest = np.setdiff1d(np.arange(len(codes)), kept)
        chosen = 1
        if photos > 1:
            chosen = POOLED if two_speak(vectors[kept], codes[kept]) else 1
        for asked in ASKED:
            some = questions(rest, codes, asked, draw)
            right = codes[some[:, 0]]
            similarities = vectors[some] @ vectors[kept].T
            together = unit(vectors[some].mean(1))[:, None] @ vectors[kept].T
            found = {
                "best photo": pooled(similarities, codes[kept], 1),
                "best two": pooled(similarities, codes[kept], POOLED),
                "chosen": pooled(similarities, codes[kept], chosen),
                "one vector": pooled(together, codes[kept], 1),
            }
            shares = {rule: float((scores.argmax(1) == right).mean()) for rule, scores in found.items()}
            result[f"{photos} photos, {asked} asked"] = shares | {"two chosen": float(chosen == POOLED)}
    return result


def compared(divisions: list[dict[str, dict[str, float]]]) -> None:
    print(f"{'':20} {'best photo':>10} {'best two':>16} {'chosen':>16} {'one vector':>16}   two chosen")
    for case in divisions[0]:
        shares = {rule: np.array([one[case][rule] for one in divisions]) for rule in divisions[0][case]}
        cells = []
        for rule in ("best two", "chosen", "one vector"):
            gain = shares[rule] - shares["best photo"]
            cells.append(f"{gain.mean():+.3f} ± {2 * gain.std(ddof=1) / len(gain) ** 0.5:.3f}")
        best, chosen = shares["best photo"].mean(), shares["two chosen"].mean()
        print(f"{case:20} {best:10.3f} " + " ".join(f"{cell:>16}" for cell in cells) + f"   {chosen:.2f}", flush=True)


def filled(place: Path, number: int) -> SqliteStore:
    """Drawn photos: things lie around 500 centres, the photos of a thing around it (cosine 2/3 among themselves)."""
    if place.exists():
        return SqliteStore(place)
    draw = np.random.default_rng(0)
    centres = draw.standard_normal((500, WIDTH))
    store = SqliteStore.create(place, Identity(None, "sphere", WIDTH))
    for start in range(0, number, BULK):
        things = centres[draw.integers(0, len(centres), BULK // OF_ONE)] + draw.standard_normal((BULK // OF_ONE, WIDTH))
        photos = unit(np.repeat(things, OF_ONE, 0) + draw.standard_normal((BULK, WIDTH)))
        names = [f"s{row // OF_ONE:07d}" for row in range(start, start + BULK)]
        store.put([Item(f"{name}/{row % OF_ONE}", columns={"sku": name}) for row, name in enumerate(names)], photos)
    return store


def used() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return 1e3 * (usage.ru_utime + usage.ru_stime)


def cost(place: Path, number: int) -> None:
    store, draw = filled(place, number), np.random.default_rng(1)
    ids = [f"s{row // OF_ONE:07d}/{row % OF_ONE}" for row in draw.integers(0, number, ASKING).tolist()]
    queries = unit(store.vectors(ids) + draw.standard_normal((ASKING, WIDTH)) / WIDTH**0.5)

    def things(query: np.ndarray, best: int) -> None:
        hits_of(store, ThingSearch(store, "sku", query, HITS, best).found().things)

    ways: dict[str, Callable[[np.ndarray], object]] = {
        "photos": lambda query: store.search(query, HITS),
        "things, best photo": lambda query: things(query, 1),
        "things, best two": lambda query: things(query, POOLED),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for row in range(ASKING):
        for name, ask in ways.items():
            began = used()
            ask(queries[row : row + 1])
            times[name].append(used() - began)
    print(f"{number:,} photos, {OF_ONE} of each thing; milliseconds of processor time per search")
    for name, each in times.items():
        own, photos = np.array(each[10:]), np.array(times["photos"][10:])  # the first ones compile and read the disk
        share = own.mean() / photos.mean()
        print(f"{name:20} {own.mean():7.2f}  p99 {np.quantile(own, 0.99):7.2f}  of photos {share:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", metavar="NAME=FOLDER")
    parser.add_argument("--divisions", type=int, default=20)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rows", type=int, help="measure the time of a search among this many drawn photos")
    parser.add_argument("--at", type=Path, help="where that index is kept for another run")
    options = parser.parse_args()
    if options.rows:
        with tempfile.TemporaryDirectory() as folder:
            cost(options.at or Path(folder) / "index", options.rows)
    results: dict[str, Any] = {}
    if options.json is not None and options.json.is_file():
        results = json.loads(options.json.read_text())
    for name, place in (text.split("=", 1) for text in options.places):
        rows, labels = features(Path(place))
        rows, done = unit(rows), results.setdefault(name, [])
        for seed in range(len(done), options.divisions):
            done.append(division(rows, labels, seed))
            print(f"\r{len(done)}/{options.divisions} divisions", end="", file=sys.stderr, flush=True)
            if options.json is not None:
                options.json.write_text(json.dumps(results) + "\n")
        print(f"\n{name}: {len(rows):,} photos of {labels.max() + 1:,} classes, {len(done)} divisions", flush=True)
        compared(done)


if __name__ == "__main__":
    main()
