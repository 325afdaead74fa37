"""What choosing batches costs: `python -m benchmarks.samplers [--json PATH]`.

1. One epoch for 60,000 images in 11,318 classes and 12 categories (the size of Stanford Online Products), beside the
   samplers of pytorch-metric-learning that do the nearest thing.
2. One batch of the samplers that choose by embeddings, beside one training step of a small network; and of it the
   choice alone, beside the same choice written as plainly as the released code of Roth et al. (numpy and scipy, one
   candidate after the other).

All on one thread, in seconds of processor time, so that other work on the machine plays little part.
"""

import argparse
import json
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Tensor, nn

from lookalike import samplers
from lookalike.samplers.big_batch import Matching
from lookalike.samplers.coreset import farthest_first
from lookalike.samplers.distribution_match import matching_costs
from lookalike.samplers.frechet import frechet_costs
from lookalike.samplers.grouping import Groups

IMAGES, CLASSES, CATEGORIES = 60_000, 11_318, 12
BATCH, PER_CLASS, BATCHES = 112, 2, 10


def seconds(run: Callable[[], Any], times: int = 3) -> float:
    """The median of a few runs."""
    taken = []
    for _ in range(times):
        start = process_time()
        run()
        taken.append(process_time() - start)
    return median(taken)


def data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    spread = torch.randint(CLASSES, (IMAGES - CLASSES,), generator=generator)
    labels = torch.cat([torch.arange(CLASSES), spread])
    return labels, labels % CATEGORIES


def peer_epochs(labels: Tensor, categories: Tensor) -> dict[str, Callable[[], Any]]:
    """The samplers of pytorch-metric-learning nearest to ours."""
    from pytorch_metric_learning.samplers import HierarchicalSampler, MPerClassSampler

    hierarchy = torch.stack([labels, categories], 1)
    balanced = MPerClassSampler(labels, PER_CLASS, BATCH, IMAGES)
    queue = MPerClassSampler(labels, 4, 32, IMAGES)
    pairs = HierarchicalSampler(hierarchy, 256, "all", batches_per_super_tuple=5)
    return {
        "class_balanced": lambda: list(balanced),
        "class_queue": lambda: list(queue),
        "category_pairs": lambda: list(pairs),
    }


def epochs() -> list[dict[str, Any]]:
    labels, categories = data()
    peers = peer_epochs(labels, categories)
    rows = []
    for name in samplers.names():
        if samplers.needs_bank(name):
            continue
        sampler = samplers.build(name, labels=labels, categories=categories)
        ours = seconds(lambda sampler=sampler: list(sampler))  # type: ignore[misc]
        peer = seconds(peers[name]) if name in peers else None
        rows.append({"sampler": name, "batches": len(sampler), "seconds": ours, "peer_seconds": peer})
    return rows


def plain_distances(points: Any) -> Any:
    product = points @ points.T
    squares = product.diagonal()[:, None]
    return np.sqrt(np.clip(squares + squares.T - 2 * product, 0, None))


def plain_ddm(big: Any, candidates: Any) -> int:
    from scipy.stats import wasserstein_distance

    values = plain_distances(big)[np.triu_indices(len(big), 1)]
    limits = (values.min(), values.max())
    whole = np.histogram(values, 50, limits)[0] / len(values)
    costs = []
    for places in candidates:
        part = big[places]
        inside = plain_distances(part)[np.triu_indices(len(part), 1)]
        share = np.histogram(inside, 50, limits)[0] / len(inside)
        moments = np.linalg.norm(big.mean(0) - part.mean(0)) + np.linalg.norm(big.std(0) - part.std(0))
        costs.append(moments + 150 * wasserstein_distance(whole, share))
    return int(np.argmin(costs))


def plain_frd(big: Any, candidates: Any) -> int:
    from scipy.linalg import sqrtm

    ridge = 1e-8 * np.eye(big.shape[1])
    covariance = np.cov(big.T)
    costs = []
    for places in candidates:
        part = big[places]
        other = np.cov(part.T)
        root = sqrtm((covariance + ridge) @ (other + ridge)).real
        mean = ((big.mean(0) - part.mean(0)) ** 2).sum()
        costs.append(mean + np.trace(covariance) + np.trace(other) - 2 * np.trace(root))
    return int(np.argmin(costs))


def plain_gc(big: Any) -> list[int]:
    table = plain_distances(big) ** 2
    chosen = [0]
    nearest = table[0]
    for _ in range(BATCH // PER_CLASS - 1):
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, table[chosen[-1]])
    return chosen


def choice_alone(labels: Tensor, bank: samplers.EmbeddingBank) -> dict[str, tuple[float, float]]:
    """Seconds of ours and of the plain choice, given the big batch and its candidates."""
    generator = torch.Generator().manual_seed(0)
    matching = Matching(Groups.of(labels), BATCH, PER_CLASS, 512, 10, False, matching_costs)
    indices = matching.big(generator)
    places = matching.draw(indices, generator)
    vectors = bank.vectors[indices]
    big, candidates, points = vectors.double().numpy(), places.numpy(), BATCH // PER_CLASS
    pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "distribution_match": (lambda: matching_costs(vectors, places), lambda: plain_ddm(big, candidates)),
        "frechet": (lambda: frechet_costs(vectors, places), lambda: plain_frd(big, candidates)),
        "coreset": (lambda: farthest_first(vectors, points, generator), lambda: plain_gc(big)),
    }
    # Ten plain matrix roots of 512 × 512 take half a minute: once is enough.
    return {name: (seconds(ours), seconds(plain, 1)) for name, (ours, plain) in pairs.items()}


def training_step() -> float:
    """Seconds of one step of four convolutions on 112 images of 84 × 84, small beside any real backbone."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for channels in (3, 64, 64, 64):
        layers += [nn.Conv2d(channels, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)]
    network = nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(128))
    images = torch.randn(BATCH, 3, 84, 84)
    network(images)
    optimiser = torch.optim.Adam(network.parameters())

    def step() -> None:
        optimiser.zero_grad()
        network(images).square().mean().backward()
        optimiser.step()

    return seconds(step)


def choices(dim: int, step: float) -> list[dict[str, Any]]:
    labels, _ = data()
    generator = torch.Generator().manual_seed(dim)
    bank = samplers.EmbeddingBank.of(nn.functional.normalize(torch.randn(IMAGES, dim, generator=generator)))
    alone = choice_alone(labels, bank)
    rows = []
    for name in filter(samplers.needs_bank, samplers.names()):
        sampler = samplers.build(name, labels=labels, bank=bank, batches=BATCHES)
        ours = seconds(lambda sampler=sampler: list(sampler)) / BATCHES  # type: ignore[misc]
        row: dict[str, Any] = {"sampler": name, "dim": dim, "seconds_per_batch": ours, "share_of_step": ours / step}
        row["choice_seconds"], row["plain_choice_seconds"] = alone.get(name, (None, None))
        rows.append(row)
    return rows


def milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value * 1e3:.1f}"


def ratio(peer: float | None, ours: float | None) -> str:
    return "" if peer is None or ours is None else f"{peer / ours:.1f}×"


def show(result: dict[str, Any]) -> None:
    print(f"one epoch of {IMAGES:,} images in {CLASSES:,} classes and {CATEGORIES} categories (limit 2 s), seconds")
    print(f"{'sampler':<20}{'batches':>8}{'ours':>10}{'pml':>10}{'faster':>9}")
    for row in result["epochs"]:
        ours, peer = row["seconds"], row["peer_seconds"]
        shown = "" if peer is None else f"{peer:.3f}"
        print(f"{row['sampler']:<20}{row['batches']:>8}{ours:>10.3f}{shown:>10}{ratio(peer, ours):>9}")
    step = result["training_step_seconds"]
    print(
        f"\none batch of {BATCH} out of 512, 10 candidates; a step of four small convolutions takes {step * 1e3:.0f} ms"
    )
    print(f"{'sampler':<20}{'dim':>5}{'batch ms':>10}{'of a step':>11}{'choice ms':>11}{'plain ms':>10}{'faster':>9}")
    for row in result["choices"]:
        ours, plain = row["choice_seconds"], row["plain_choice_seconds"]
        batch = f"{milliseconds(row['seconds_per_batch']):>10}{row['share_of_step']:>11.1%}"
        choice = f"{milliseconds(ours):>11}{milliseconds(plain):>10}{ratio(plain, ours):>9}"
        print(f"{row['sampler']:<20}{row['dim']:>5}{batch}{choice}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="write the figures to this file")
    path = parser.parse_args().json
    torch.set_num_threads(1)
    with threadpool_limits(1):
        step = training_step()
        result = {
            "threads": 1,
            "torch": torch.__version__,
            "epochs": epochs(),
            "training_step_seconds": step,
            "choices": [row for dim in (128, 512) for row in choices(dim, step)],
        }
    show(result)
    if path:
        with open(path, "w") as file:
            json.dump(result, file, indent=2)


if __name__ == "__main__":
    main()
