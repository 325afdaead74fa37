"""Groups without labels: how well do they agree with classes that the model never saw?

python -m benchmarks.discover NAME=PLACE [NAME=PLACE …] [--swapped] [--json FILE] [--rows 100000]

A PLACE is the folder of a run (its test classes) or a folder of photos (EfficientNet-lite0 at 224 pixels, at 128 for
Omniglot, whitened on half of its classes; the other half is grouped), or an .npz file of such features with labels.
`lookalike discover` runs with its own settings. Beside it stand k-means, average link and Ward with the true number of
classes, HDBSCAN with the best of its settings in hindsight, and three other clusterings of the same graph of
neighbours: connected components above a similarity (the best of 24 in hindsight), first neighbours (FINCH, the best of
its partitions in hindsight) and Louvain moves for the sum of all similarities above the suggested level.

"Equal coverage": of two methods the one that leaves out fewer photos answers for as many as the other, those nearest to
the mean of their group. ARI, NMI and purity are those of the photos that are answered for, "our" ones those of
`lookalike discover` at the same coverage. "Gap" is the ARI that a method has more than ours there; that of ours is the
largest of the peers' (without the other clusterings of our graph). "All": ARI of all photos, each that is left out as a
group of its own. "Promise": the share of 50 draws of 60 checked pairs in which the purity is at least what `lookalike
ask` promises after them. --swapped groups the half of the classes that otherwise teaches the whitening, which nobody
looked at when settings were chosen. --rows measures the time of random vectors instead.
"""

import argparse
import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.verdicts import unit
from lookalike.discover.grouping import FoundGroups, Grouping, hierarchy
from lookalike.discover.purity import Checked, draw_pairs

DRAWS, CHECKED = 50, 60
SMALLEST = (3, 5, 8, 12, 20)  # groups of HDBSCAN
SMOOTH = (1, 3, 5, 10)
NEAR = 0.02  # ARI


def unseen(features: np.ndarray, labels: np.ndarray, swapped: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """One half of the classes, whitened on the other half; `swapped`: the other way round."""
    from lookalike.models.whitening import whitening

    rows, count = unit(features), int(labels.max()) + 1
    taught = np.isin(labels, np.random.default_rng(7).permutation(count)[: count // 2]) != swapped
    mean = rows[taught].mean(0)
    matrix = whitening(torch.from_numpy(rows[taught] - mean), torch.from_numpy(labels[taught])).numpy()
    return unit((rows[~taught] - mean) @ matrix), np.unique(labels[~taught], return_inverse=True)[1]


def read(place: Path, swapped: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Vectors and classes of a place; a run has only its test classes."""
    if (place / "test.npz").is_file():
        with np.load(place / "test.npz", allow_pickle=False) as content:
            return unit(content["embeddings"].astype(np.float32)), np.unique(content["labels"], return_inverse=True)[1]
    if place.suffix == ".npz":
        with np.load(place, allow_pickle=False) as content:
            return unseen(content["features"], content["labels"], swapped)
    return unseen(*features_of(place), swapped)


def features_of(place: Path) -> tuple[np.ndarray, np.ndarray]:
    """Those of a folder of photos, from the cache where they are there."""
    from dataclasses import replace

    from lookalike import data
    from lookalike.features import extract
    from lookalike.models import Architecture, Model

    photos = data.load(str(place))
    model = Model.create(Architecture("efficientnet_lite0", dim=128, batch_norm="frozen_statistics"), "pretrained")
    size = 128 if photos.name.startswith(("omniglot", "images_")) else 224
    model = replace(model, preprocessing=model.preprocessing.sized(size, size * 8 // 7)).headless()
    return extract(model, photos, backend="auto").numpy(), photos.labels.numpy()


def figures(groups: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """What the answered photos (groups of 0 and more) are worth."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    some = groups >= 0
    return {
        "ari": float(adjusted_rand_score(labels[some], groups[some])),
        "nmi": float(normalized_mutual_info_score(labels[some], groups[some])),
        "purity": purity(groups[some], labels[some]),
        "coverage": float(some.mean()),
        "groups": len(np.unique(groups[some])),
    }


def of_all(groups: np.ndarray, labels: np.ndarray) -> float:
    """ARI of all photos; each that is in no group is one of its own."""
    alone = groups.max() + 1 + np.arange(len(groups))
    return figures(np.where(groups >= 0, groups, alone), labels)["ari"]


def purity(groups: np.ndarray, labels: np.ndarray) -> float:
    table = np.zeros((groups.max() + 1, labels.max() + 1), np.int64)
    np.add.at(table, (groups, labels), 1)
    return float(table.max(1).sum() / len(labels))


def surest(vectors: np.ndarray, groups: np.ndarray, coverage: float) -> np.ndarray:
    """The groups of the share `coverage` of all photos that are nearest to the mean of their group, the others −1."""
    means = np.zeros((groups.max() + 1, vectors.shape[1]))
    np.add.at(means, groups[groups >= 0], vectors[groups >= 0])
    near = np.where(groups >= 0, (vectors * unit(means)[groups]).sum(1), -np.inf)
    kept = np.argsort(-near, kind="stable")[: round(coverage * len(groups))]
    result = np.full(len(groups), -1)
    result[kept] = groups[kept]
    return result


def peers(vectors: np.ndarray, labels: np.ndarray) -> dict[str, list[np.ndarray]]:
    """The groups of each peer; of those with settings, one list per setting."""
    from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans

    classes = int(labels.max()) + 1
    result = {
        "k-means, true number": [KMeans(classes, n_init=10, random_state=0).fit(vectors).labels_],
        "average link, true number": [
            AgglomerativeClustering(classes, metric="cosine", linkage="average").fit(vectors).labels_
        ],
        "Ward, true number": [AgglomerativeClustering(classes, linkage="ward").fit(vectors).labels_],
    }
    distances = np.clip(1 - vectors.astype(np.float64) @ vectors.T.astype(np.float64), 0, 2)
    result["HDBSCAN, in hindsight"] = [
        HDBSCAN(min_cluster_size=size, min_samples=smooth, metric="precomputed", copy=True).fit(distances).labels_
        for size in SMALLEST
        for smooth in SMOOTH
    ]
    return result


def on_the_graph(found: Grouping, level: float) -> dict[str, list[np.ndarray]]:
    """Other ways to cut the same graph of neighbours."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count, near = len(found), found.nearest
    scores = np.stack([found.vectors[rows] @ vector for vector, rows in zip(found.vectors, near, strict=True)])
    components = []
    for floor in np.linspace(found.random + 2 * found.spread, float(scores[:, 0].max()), 24):
        rows, places = np.nonzero(scores >= floor)
        graph = coo_array((np.ones(len(rows)), (rows, near[rows, places])), shape=(count, count))
        components.append(_large(connected_components(graph, directed=False)[1]))
    return {
        "components, in hindsight": components,
        "first neighbours, in hindsight": [_large(groups) for groups in first_neighbours(found.vectors)],
        "Louvain moves, same level": [_large(louvain(found.vectors, near, level))],
    }


def _large(groups: np.ndarray) -> np.ndarray:
    """Without groups of one or two."""
    return np.where(np.bincount(groups)[groups] >= 3, groups, -1)


def first_neighbours(vectors: np.ndarray) -> list[np.ndarray]:
    """FINCH (Sarfraz, Sharma, Stiefelhagen, CVPR 2019): what first neighbours connect, again and again."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    result, means, groups = [], vectors, np.arange(len(vectors))
    while len(means) > 2:
        scores = means @ means.T
        np.fill_diagonal(scores, -2)
        rows = np.arange(len(means))
        graph = coo_array((np.ones(len(means)), (rows, scores.argmax(1))), shape=scores.shape)
        groups = connected_components(graph, directed=False)[1][groups]
        sums = np.zeros((groups.max() + 1, vectors.shape[1]))
        np.add.at(sums, groups, vectors)
        means = unit(sums)
        result.append(groups)
    return result


def louvain(vectors: np.ndarray, near: np.ndarray, level: float, rounds: int = 20) -> np.ndarray:
    """Moves of single photos, then of groups, that raise Σ (similarity − level) over pairs of one group."""
    own, links = np.arange(len(vectors)), [set(row.tolist()) for row in near]
    for row, others in enumerate(near.tolist()):
        for other in others:
            links[other].add(row)
    sums: Any = vectors.astype(np.float64)
    sizes: Any = np.ones(len(vectors))
    while True:
        groups, total, count = np.arange(len(sums)), sums.copy(), sizes.copy()
        for _ in range(rounds):
            moved = sum(_moved(node, groups, total, count, sums, sizes, links, level) for node in range(len(sums)))
            if not moved:
                break
        names, groups = np.unique(groups, return_inverse=True)
        own = groups[own]
        if len(names) == len(sums):
            return own
        merged = np.zeros((len(names), vectors.shape[1]))
        np.add.at(merged, groups, sums)
        joined: list[set[int]] = [set() for _ in names]
        for node, others in enumerate(links):
            joined[groups[node]] |= {int(groups[other]) for other in others} - {int(groups[node])}
        sums, sizes, links = merged, np.bincount(groups, sizes), joined


def _moved(node: int, groups: Any, total: Any, count: Any, sums: Any, sizes: Any, links: Any, level: float) -> bool:
    here = groups[node]
    near = np.unique([here, *groups[list(links[node])]])
    gains = total[near] @ sums[node] - level * count[near] * sizes[node]
    gains[near == here] -= sums[node] @ sums[node] - level * sizes[node] ** 2
    best = near[gains.argmax()]
    if gains.max() <= gains[near == here][0] + 1e-12:
        return False
    for group, sign in ((here, -1), (best, 1)):
        total[group] += sign * sums[node]
        count[group] += sign * sizes[node]
    groups[node] = best
    return True


def promise(found: FoundGroups, labels: np.ndarray) -> float:
    """How often the purity is at least what checked pairs promise."""
    some = found.groups >= 0
    true = purity(found.groups[some], labels[some])
    kept = 0
    for seed in range(DRAWS):
        left, right = draw_pairs(found.groups, CHECKED, seed).T
        kept += Checked(CHECKED, int((labels[left] == labels[right]).sum())).purity <= true
    return kept / DRAWS


def compared(vectors: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Every method, and `lookalike discover` at the coverage of those that leave photos out."""
    whole = hierarchy(vectors)
    level = whole.suggested()
    found = whole.at(level)
    ours = figures(found.groups, labels)
    result: dict[str, Any] = {"lookalike discover": ours | {"all": of_all(found.groups, labels)}}
    result["lookalike discover"]["promise"] = promise(found, labels)
    beside = peers(vectors, labels)
    for name, settings in (beside | on_the_graph(whole, level)).items():
        best: dict[str, float] = {"gap": -1.0, "ari": -1.0}
        for groups in settings:
            # in hindsight: the setting that beats ours by most at its own coverage, if that is at least half of ours
            coverage = min(ours["coverage"], float((groups >= 0).mean()))
            if coverage < ours["coverage"] / 2:
                continue
            theirs = figures(surest(vectors, groups, coverage), labels)
            equal = figures(surest(vectors, found.groups, coverage), labels)
            gap = theirs["ari"] - equal["ari"]
            if gap > best["gap"]:
                best = theirs | {"gap": gap} | {f"our {figure}": equal[figure] for figure in ("ari", "nmi", "purity")}
        result[name] = best | {"all": max(of_all(groups, labels) for groups in settings)}
    result["lookalike discover"]["gap"] = max(result[name]["gap"] for name in beside)
    return result


def timed(rows: int, width: int = 128) -> None:
    """Random groups of 20 vectors: processor seconds and memory."""
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(rows // 20, width)).astype(np.float32)
    vectors = unit(np.repeat(centres, 20, 0) + generator.normal(size=(rows // 20 * 20, width)).astype(np.float32))
    clock: Callable[[], float] = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2])  # noqa: E731
    began = clock()
    whole = hierarchy(vectors)
    merged = clock()
    found = whole.at(whole.suggested())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{len(vectors):,} × {width}: {merged - began:.0f} processor-seconds for neighbours and merges, "
        f"{clock() - merged:.0f} for the level; {found.count:,} groups; peak {memory:,.0f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", metavar="NAME=PLACE")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--swapped", action="store_true")
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    if options.rows is not None:
        timed(options.rows)
    results = json.loads(options.json.read_text()) if options.json is not None and options.json.is_file() else {}
    for text in options.places:
        name, place = text.split("=", 1)
        if name not in results:
            vectors, labels = read(Path(place), options.swapped)
            print(f"\n{name}: {len(vectors):,} photos of {labels.max() + 1:,} classes", flush=True)
            results[name] = compared(vectors, labels)
            if options.json is not None:
                options.json.write_text(json.dumps(results, indent=1) + "\n")
        for method, row in results[name].items():
            print(f"{method:32} " + "  ".join(f"{key} {value:.3f}" for key, value in row.items()), flush=True)
    near = sum(result["lookalike discover"]["gap"] <= NEAR for result in results.values())
    print(f"\nwithin {NEAR} ARI of the best at equal coverage: {near} of {len(results)} sets" if results else "")


if __name__ == "__main__":
    main()
