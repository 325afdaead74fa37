"""A plane, eight line segments, and what a loss forgets: the toy of Revisiting Training Strategies, sec. G [math D.4].

Roth, Milbich, Sinha, Gupta, Ommer, Cohen: Revisiting Training Strategies and Generalization Performance in Deep Metric
Learning, ICML 2020. A small network learns to tell four segments apart along one direction; the test segments lie apart
along another. If training squeezes the embedding onto one direction, the second singular value vanishes, and with it
what the test needs. `diagonal` is the data of the released code, `vertical` that of figure 12.

Departs from the paper: the released regularised run leaves out the attraction of positives altogether, besides
switching with p = 0.001 [math ERR-28]. Both are settings here, so that each can be seen alone. The coordinates of
figure 12 are not printed: its lines stand at x = 0.1, 0.35, 0.6, 0.85 with y from 0.1 to 0.9, its test bands lie across
them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from lookalike.errors import check, unknown
from lookalike.evaluation import evaluate
from lookalike.evaluation.geometry.spectrum import singular_values
from lookalike.geometry import compare, distances, normalise
from lookalike.targets import Pairs

Layout = Literal["diagonal", "vertical"]
Segment = tuple[float, float, float, float]  # from x, y to x, y
DIAGONAL = ((0.1, 0.3), (0.35, 0.55), (0.6, 0.8), (0.85, 1.05))
PLACES = (0.1, 0.35, 0.6, 0.85)
LAYOUTS: dict[str, tuple[list[Segment], list[Segment]]] = {
    "diagonal": (
        [(low, low, high, high) for low, high in DIAGONAL],
        [(0.2, 0.2, 0.2, 0.4), (0.2, 0.55, 0.2, 0.85), (0.4, 0.2, 0.6, 0.2), (0.7, 0.2, 0.9, 0.2)],
    ),
    "vertical": ([(x, 0.1, x, 0.9) for x in PLACES], [(0.1, y, 0.9, y) for y in PLACES]),
}
GRID, PER_SEGMENT, HIDDEN = 100, 15, 30
STEPS, BATCH, RATE, MARGIN = 200, 24, 0.03, 0.1


@dataclass(frozen=True)
class Variant:
    """What is trained.

    switch: p, the chance that a positive takes the negative's place.
    attracts: whether positives attract.
    """

    switch: float = 0.0
    attracts: bool = True


VARIANTS = {
    "base": Variant(),
    "p = 0.001 alone": Variant(switch=0.001),
    "released: p = 0.001, no attraction": Variant(switch=0.001, attracts=False),
    "no attraction alone": Variant(attracts=False),
}


@dataclass(frozen=True)
class ToyRun:
    """One trained network.

    train: where it puts the points of the train segments, n × 2.
    test: where it puts those of the test segments, m × 2.
    second: the second singular value of `train` as a share of both, at most 0.5.
    test_second: that of `test`.
    test_recall: recall@1 of the segments never seen.
    """

    train: Float[Tensor, "n 2"]
    test: Float[Tensor, "m 2"]
    second: float
    test_second: float
    test_recall: float


def segments(layout: Layout, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Points of the four train and of the four test segments, and the segment of each (the same for both).

    >>> train, test, labels = segments("diagonal", torch.Generator().manual_seed(0))
    >>> train.shape, test.shape, labels.bincount().tolist()
    (torch.Size([60, 2]), torch.Size([60, 2]), [15, 15, 15, 15])
    """
    if layout not in LAYOUTS:
        raise unknown("layout of the toy", layout, LAYOUTS)
    train, test = (torch.cat([_points(segment, generator) for segment in part]) for part in LAYOUTS[layout])
    return train, test, torch.arange(4).repeat_interleave(PER_SEGMENT)


def _points(segment: Segment, generator: torch.Generator) -> Tensor:
    begin, end = torch.tensor(segment[:2]), torch.tensor(segment[2:])
    places = torch.linspace(0, 1, GRID)[torch.randperm(GRID, generator=generator)[:PER_SEGMENT]]
    return torch.lerp(begin, end, places[:, None])


def network(generator: torch.Generator) -> nn.Sequential:
    """2-30-30-2 with ReLU and torch's default initialisation, drawn from `generator`."""
    layers = [nn.Linear(2, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 2)]
    for layer in layers:
        if isinstance(layer, nn.Linear):
            reach = layer.in_features**-0.5
            nn.init.uniform_(layer.weight, -reach, reach, generator=generator)
            nn.init.uniform_(layer.bias, -reach, reach, generator=generator)
    return nn.Sequential(*layers)


def toy_loss(
    embeddings: Float[Tensor, "n 2"], labels: Integer[Tensor, " n"], variant: Variant, generator: torch.Generator
) -> Float[Tensor, ""]:
    """The mean of d_ap plus the mean of [0.1 − d_an]_+ over ALL triplets of the batch, some of them switched.

    A switched triplet (a, a, p) attracts nothing and repels the positive p.
    """
    pairs = Pairs.within(labels)
    apart = distances(compare(embeddings, embeddings, None))
    anchor, positive, negative = (pairs.positive[:, :, None] & pairs.negative[:, None, :]).nonzero().unbind(1)
    switched = torch.rand(len(anchor), generator=generator) < variant.switch
    far = apart[anchor, torch.where(switched, positive, negative)]
    loss = (MARGIN - far).relu().mean()
    if variant.attracts:
        loss = loss + torch.where(switched, 0.0, apart[anchor, positive]).mean()
    return loss


def train_toy(variant: Variant, layout: Layout = "diagonal", seed: int = 1) -> ToyRun:
    """200 steps of Adam on batches of 24 points; points, network and batches all come from `seed`.

    `variant`: what is trained, such as `toy.Variant(switch=0.001)`. `layout`: of the segments, "diagonal" (the released
    code) or "vertical" (figure 12).
    """
    generator = torch.Generator().manual_seed(seed)
    train, test, labels = segments(layout, generator)
    net = network(generator)
    optimiser = torch.optim.Adam(net.parameters(), lr=RATE)
    for _ in range(STEPS):
        batch = torch.randperm(len(train), generator=generator)[:BATCH]
        loss = toy_loss(normalise(net(train[batch]), "sphere"), labels[batch], variant, generator)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        train, test = (normalise(net(points), "sphere") for points in (train, test))
    recall = evaluate(test, labels, metrics="recall@1")["recall@1"]
    return ToyRun(train, test, second_share(train), second_share(test), recall)


def second_share(embeddings: Float[Tensor, "n 2"]) -> float:
    """The second singular value, both being scaled to the sum 1: 0 is a line, 0.5 is round.

    >>> round(second_share(torch.eye(2)), 6)
    0.5
    """
    values = singular_values(embeddings)
    return float(values[1:2].sum() / values.sum())


def run_toy(
    layout: Layout = "diagonal", seeds: int = 10, progress: Callable[[int, int], None] | None = None
) -> dict[str, list[ToyRun]]:
    """Every variant with `seeds` 1, 2, …; `layout` as in `train_toy`."""
    check(seeds >= 1, f"the toy needs at least one seed, not {seeds}")
    runs: dict[str, list[ToyRun]] = {name: [] for name in VARIANTS}
    for seed in range(1, seeds + 1):
        for place, (name, variant) in enumerate(VARIANTS.items(), 1):
            runs[name].append(train_toy(variant, layout, seed))
            if progress is not None:
                progress((seed - 1) * len(VARIANTS) + place, seeds * len(VARIANTS))
    return runs
