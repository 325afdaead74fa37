"""What choosing batches costs: `python -m benchmarks.samplers [--json PATH]`.

1. One epoch for 60,000 images in 11,318 classes and 12 categories (the size of Stanford Online Products), beside the
   samplers of pytorch-metric-learning that do the nearest thing.
2. One batch of the samplers that choose by embeddings, beside the same choice written as plainly as the released code
   of Roth et al. (numpy and scipy, one candidate after the other), and beside one training step of a small network.
"""

import argparse
import json
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lookalike import samplers
from lookalike.samplers.big_batch import Matching
from lookalike.samplers.grouping import Groups

IMAGES, CLASSES, CATEGORIES = 60_000, 11_318, 12
BATCH, PER_CLASS, BATCHES = 112, 2, 10


def seconds(run: Callable[[], Any], times: int = 3) -> float:
    """The median of a few runs."""
    taken = []
    for _ in range(times):
        start = perf_counter()
        run()
        taken.append(perf_counter() - start)
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


def plain_choices(labels: Tensor, bank: samplers.EmbeddingBank) -> dict[str, float]:
    """Seconds of the choice alone, given the big batch and its candidates."""
    generator = torch.Generator().manual_seed(0)
    matching = Matching(Groups.of(labels), BATCH, PER_CLASS, 512, 10, False)
    indices = matching.big(generator)
    big, candidates = bank.vectors[indices].double().numpy(), matching.draw(indices, generator).numpy()
    return {
        "distribution_match": seconds(lambda: plain_ddm(big, candidates), 3),
        "frechet": seconds(lambda: plain_frd(big, candidates), 1),
        "coreset": seconds(lambda: plain_gc(big), 3),
    }


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
    bank = samplers.EmbeddingBank(IMAGES, dim)
    vectors = nn.functional.normalize(torch.randn(IMAGES, dim, generator=generator))
    bank.update(torch.arange(IMAGES), vectors)
    plain = plain_choices(labels, bank)
    rows = []
    for name in filter(samplers.needs_bank, samplers.names()):
        sampler = samplers.build(name, labels=labels, bank=bank, batches=BATCHES)
        ours = seconds(lambda sampler=sampler: list(sampler)) / BATCHES  # type: ignore[misc]
        row = {"sampler": name, "dim": dim, "seconds_per_batch": ours, "share_of_step": ours / step}
        rows.append(row | {"plain_seconds_per_batch": plain.get(name)})
    return rows


def ratio(peer: float | None, ours: float) -> str:
    return "" if peer is None else f"{peer / ours:.1f}×"


def show(result: dict[str, Any]) -> None:
    print(f"one epoch of {IMAGES:,} images in {CLASSES:,} classes and {CATEGORIES} categories (limit 2 s)")
    print(f"{'sampler':<20}{'batches':>8}{'seconds':>10}{'peer s':>10}{'faster':>9}")
    for row in result["epochs"]:
        peer = "" if row["peer_seconds"] is None else f"{row['peer_seconds']:.3f}"
        faster = ratio(row["peer_seconds"], row["seconds"])
        print(f"{row['sampler']:<20}{row['batches']:>8}{row['seconds']:>10.3f}{peer:>10}{faster:>9}")
    step = result["training_step_seconds"]
    print(
        f"\none batch of {BATCH} out of 512, 10 candidates; a step of four small convolutions takes {step * 1e3:.0f} ms"
    )
    print(f"{'sampler':<20}{'dim':>8}{'ms':>10}{'of a step':>10}{'plain ms':>10}{'faster':>9}")
    for row in result["choices"]:
        plain = row["plain_seconds_per_batch"]
        shown = "" if plain is None else f"{plain * 1e3:.1f}"
        ours = row["seconds_per_batch"]
        line = f"{row['sampler']:<20}{row['dim']:>8}{ours * 1e3:>10.1f}{row['share_of_step']:>10.1%}{shown:>10}"
        print(f"{line}{ratio(plain, ours):>9}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="write the figures to this file")
    path = parser.parse_args().json
    torch.set_num_threads(1)
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
