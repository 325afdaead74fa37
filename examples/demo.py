"""Look-alikes become neighbours, on characters the network has never seen: about a minute on two cores.

    python -m examples.demo [--steps 300] [--loss multi_similarity] [--seed 0]

The data draws itself: characters of many scripts in many fonts. Half of the characters train a small network; the other
half tell how well it finds a character again in another font, beside raw pixels and the network before training.
"""

import argparse
import sys
import time

import torch
from torch import Tensor, nn

from lookalike import data, evaluate, losses, samplers
from lookalike.models import Conv4, Embedder

DIM, BATCH, PER_CLASS = 64, 96, 4


def pixels(dataset: data.Dataset) -> Tensor:
    """All images, one grey channel in [−1, 1]."""
    images = [dataset.images.open(row).decode()[:1] for row in range(len(dataset))]
    return torch.stack(images).float() / 127.5 - 1


@torch.no_grad()
def embed(network: nn.Module, images: Tensor) -> Tensor:
    network.eval()
    return torch.cat([network(batch) for batch in images.split(512)])


def train(network: nn.Module, loss: nn.Module, images: Tensor, labels: Tensor, steps: int, seed: int) -> None:
    batches = samplers.ClassBalanced(labels, batch_size=BATCH, per_class=PER_CLASS, batches=steps, seed=seed)
    groups = getattr(loss, "parameter_groups", lambda _: [])(1e-3)
    optimiser = torch.optim.AdamW([{"params": network.parameters(), "lr": 1e-3}, *groups])
    network.train()
    start = time.monotonic()
    for step, batch in enumerate(batches, 1):
        value = loss(network(images[batch]), labels[batch])
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        if step % 10 == 0 or step == steps:
            rate = step * BATCH / (time.monotonic() - start)
            left = (steps - step) * BATCH / rate
            line = f"\rstep {step}/{steps}  loss {value.item():.3f}  {rate:.0f} images/s  {left:.0f} s left "
            print(line, end="\n" if step == steps else "", file=sys.stderr, flush=True)


def report(name: str, embeddings: Tensor, labels: Tensor) -> float:
    result = evaluate(embeddings, labels)
    low, high = result.interval("recall@1")
    print(f"{name:26} {result['recall@1']:9.3f}  [{low:.3f}, {high:.3f}] {result['map@r']:9.3f}", flush=True)
    return result["recall@1"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--loss", default="multi_similarity")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    glyphs = data.build("glyphs")
    seen, unseen = (glyphs.where(split=split).dense() for split in ("train", "test"))
    print(f"train on {seen.summary()}\ntest on  {unseen.summary()}\n")
    known, new = pixels(seen), pixels(unseen)
    network = Embedder(Conv4(channels=1), dim=DIM)
    print(f"{'on unseen characters':26} {'recall@1':>9}  {'95 % interval':14} {'map@r':>9}")
    report("raw pixels", new.flatten(1), unseen.labels)
    report("network before training", embed(network, new), unseen.labels)
    loss = losses.build(options.loss, classes=seen.classes, dim=DIM)
    train(network, loss, known, seen.labels, options.steps, options.seed)
    report(f"after {options.steps} steps", embed(network, new), unseen.labels)


if __name__ == "__main__":
    main()
