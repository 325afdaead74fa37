"""A new model before everything is embedded by it: how much of its recall@10 do mapped items keep?

python -m benchmarks.upgrade NAME=PHOTOS,RUN [NAME=PHOTOS,RUN …] [--at FOLDER] [--draws 10] [--json FILE]

A RUN is that of `lookalike fit PHOTOS --backbone efficientnet_lite0 --out RUN`; its test classes, which no model was
taught, are the items of an index. Old and new models: EfficientNet-lite0 as it comes (1,280 dimensions) and the model
of the run; lite0 and lite1, both as they come. In each draw 5% of the items, or 500 (the least that `lookalike
upgrade` takes by itself), are embedded by both models; maps learn from these, all others are mapped. Every item that
was not drawn asks, embedded by the new model, among all others.

Columns: recall@10 of the new model; as shares of it that of the old model ("staying"), of items mapped by each kind of
map, by the kind that `lookalike upgrade` chooses ("chosen"), and the share that it reads off the sample alone
("said"); "mlp less ridge": what a hidden layer beside ridge adds to its share, over three draws. Means over draws, with
two standard errors. FOLDER keeps what the networks gave.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.verdicts import unit
from lookalike.search.upgrading.mapping import FEWEST, SHARE
from lookalike.search.upgrading.maps import KINDS, RANKS, VectorMap, choose, ridge

CHUNK = 64
HIDDEN, STEPS, TRIED = 256, 200, 3  # of the network beside ridge, which is tried in the first draws only


def frozen(network: str, paths: list[str], file: Path) -> np.ndarray:
    """The features of a network as it comes, from a file where they are there."""
    from lookalike.models import Architecture, Model

    if file.is_file():
        return unit(np.load(file))
    model = Model.create(Architecture(network, dim=128, batch_norm="frozen_statistics"), "pretrained")
    model = replace(model, preprocessing=model.preprocessing.sized(224, 256)).headless()
    rows = []
    for start in range(0, len(paths), CHUNK):
        rows.append(model.encode(paths[start : start + CHUNK], backend="auto").numpy())
        print(f"{file.stem}: {start:,} of {len(paths):,}", end="\r", file=sys.stderr)
    file.parent.mkdir(parents=True, exist_ok=True)
    np.save(file, np.concatenate(rows))
    return unit(np.concatenate(rows))


def pairs(name: str, photos: Path, run: Path, at: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Old and new vectors of the test classes of a run, with their classes."""
    with np.load(run / "test.npz", allow_pickle=False) as content:
        paths = [str(photos / path) for path in content["paths"].tolist()]
        labels, fitted = content["labels"], unit(content["embeddings"])
    first = frozen("efficientnet_lite0", paths, at / f"{name}-lite0.npy")
    yield "frozen → fitted", first, fitted, labels
    yield "lite0 → lite1", first, frozen("efficientnet_lite1", paths, at / f"{name}-lite1.npy"), labels


def mlp(old: np.ndarray, new: np.ndarray) -> VectorMap:
    """One hidden layer beside ridge, trained to raise the cosine between mapped and true vectors."""
    import torch
    from torch import nn

    straight, middle = ridge(old, new), old.mean(0)
    spread = np.float32(np.linalg.norm(old - middle, axis=1).mean() / np.sqrt(old.shape[1]))
    first, target = torch.from_numpy(straight(old)), torch.from_numpy(new)
    inputs = torch.from_numpy((old - middle) / spread)
    torch.manual_seed(0)
    last = nn.Linear(HIDDEN, new.shape[1])
    bend = nn.Sequential(nn.Linear(old.shape[1], HIDDEN), nn.GELU(), last)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    optimiser = torch.optim.AdamW(bend.parameters(), 1e-3, weight_decay=1e-2)
    for _ in range(STEPS):
        loss = 1 - nn.functional.cosine_similarity(first + bend(inputs), target).mean()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    def apply(vectors: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            rows = torch.from_numpy((vectors - middle) / spread)
            return np.asarray(straight(vectors) + bend(rows).numpy(), np.float32)

    return apply


def recall(queries: np.ndarray, gallery: np.ndarray, labels: np.ndarray, asked: np.ndarray) -> float:
    """The share of the items asked whose first ten, itself left out, hold one of its class."""
    similarities = queries[asked] @ gallery.T
    similarities[np.arange(len(asked)), asked] = -np.inf
    first = np.argpartition(-similarities, RANKS, axis=1)[:, :RANKS]
    return float((labels[first] == labels[asked, None]).any(1).mean())


def draw(old: np.ndarray, new: np.ndarray, labels: np.ndarray, size: int, seed: int) -> dict[str, Any]:
    """The shares of one sample."""
    order = np.random.default_rng(seed).permutation(len(old))
    sample, asked = np.sort(order[:size]), np.sort(order[size:])
    choice = choose(old[sample], new[sample], [str(label) for label in labels[sample]], "sphere")
    whole = recall(new, new, labels, asked)
    shares = {}
    for kind, fit in ({**KINDS, "mlp": mlp} if seed < TRIED else KINDS).items():
        mapped = unit(fit(old[sample], new[sample])(old))
        mapped[sample] = new[sample]
        shares[kind] = recall(new, mapped, labels, asked) / whole
    staying = recall(old, old, labels, asked) / whole
    return {"shares": shares, "kind": choice.kind, "said": choice.share, "new": whole, "staying": staying}


def summary(draws: list[dict[str, Any]]) -> dict[str, Any]:
    """Means with two standard errors."""

    def mean(values: list[float]) -> list[float]:
        return [float(np.mean(values)), 2 * float(np.std(values, ddof=1)) / len(values) ** 0.5]

    return {
        "chosen": mean([one["shares"][one["kind"]] for one in draws]),
        "said": mean([one["said"] for one in draws]),
        "new": mean([one["new"] for one in draws]),
        "staying": mean([one["staying"] for one in draws]),
        "mlp less ridge": mean([one["shares"]["mlp"] - one["shares"]["ridge"] for one in draws[:TRIED]]),
        "wins": dict(Counter(max(KINDS, key=one["shares"].get) for one in draws)),
        "choices": dict(Counter(one["kind"] for one in draws)),
    } | {kind: mean([one["shares"][kind] for one in draws]) for kind in KINDS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", metavar="NAME=PHOTOS,RUN")
    parser.add_argument("--at", type=Path, default=Path("upgrade-features"))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results: dict[str, Any] = {}
    shown = ("new", "staying", *KINDS, "mlp less ridge", "chosen", "said")
    print(f"{'set, models, sample':<40}" + "".join(f"{name:>16}" for name in shown))
    for name, place in (place.split("=", 1) for place in arguments.places):
        photos, run = map(Path, place.rsplit(",", 1))
        for models, old, new, labels in pairs(name, photos, run, arguments.at):
            for size in sorted({round(SHARE * len(old)), FEWEST}):
                draws = [draw(old, new, labels, size, seed) for seed in range(arguments.draws)]
                row = results[f"{name} {models} {size} of {len(old)}"] = summary(draws)
                figures = "".join(f"{row[one][0]:>10.3f} ±{row[one][1]:.3f}" for one in shown)
                print(f"{name} {models} {size:,} of {len(old):,}".ljust(40) + figures, row["wins"], flush=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
