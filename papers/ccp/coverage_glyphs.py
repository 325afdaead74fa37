"""CCP in a plane: a few glyphs embedded in two dimensions, instance by instance, with proxies and covering radius.

Gürbüz, Can, Alatan: Deep Metric Learning with Chance Constraints, WACV 2024, figure 1, with glyphs for its digits. When
an instance has converged, the next proxies are images far from the converged ones: they pull in what lies outside.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from lookalike.analysis.figures import COLOURS, panels
from lookalike.data import Dataset, glyphs
from lookalike.evaluation import evaluate
from lookalike.geometry import normalise
from lookalike.losses import CosineContrastive
from lookalike.models.backbones.conv4 import Conv4
from lookalike.progress import Progress
from lookalike.training.ccp import Chance, ChanceConstraints, ProxyObjective
from lookalike.training.pool import Pool

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLASSES, PROXIES, POOL, PER_CLASS = 4, 2, 8, 5
EVERY, STEPS, RATE, WIDTH = 10, 800, 2e-3, 16


@dataclass(frozen=True)
class CoverageSnapshot:
    """The plane as an instance ends: points, the proxies it has converged to, those of the next, and the radius."""

    instance: int
    step: int
    points: Float[Tensor, "n 2"]
    labels: Integer[Tensor, " n"]
    converged: Float[Tensor, "classes k 2"]
    following: Float[Tensor, "classes k 2"]
    radius: Float[Tensor, " classes"]  # the farthest a point lies from the nearest proxy of its class


def snapshots(count: int = 4, seed: int = 0, progress: Progress | None = None) -> list[CoverageSnapshot]:
    """The plane at the end of each of the first `count` instances to converge."""
    images, labels = _images(glyphs())
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = nn.Sequential(Conv4(1, WIDTH), nn.Flatten(), nn.LazyLinear(2))
        network(images[:2])
    chance = Chance(proxies=PROXIES, pool=POOL, patience=4, normalised=True)
    goal = ProxyObjective(CosineContrastive(normalise="ball"), chance, CLASSES, 2)
    optimiser = torch.optim.Adam([*network.parameters(), goal.proxies], lr=RATE)
    strategy = ChanceConstraints(network, goal, optimiser, Pool(TensorDataset(images, labels), labels, seed=seed))
    strategy.begin()
    shots: list[CoverageSnapshot] = []
    for step in range(1, STEPS + 1):
        rows = torch.cat([_members(labels, code, generator) for code in range(CLASSES)])
        network.train()
        optimiser.zero_grad()
        torch.stack(list(goal(network(images[rows]), labels[rows], step).values())).sum().backward()  # type: ignore[no-untyped-call]
        strategy.gradients()
        optimiser.step()
        if step % EVERY == 0:
            shots += _look(network, strategy, images, labels, step)
            if progress is not None:
                progress(len(shots), count)
        if len(shots) == count:
            break
    return shots


def _members(labels: Tensor, code: int, generator: torch.Generator) -> Tensor:
    members = (labels == code).nonzero().flatten()
    return members[torch.randperm(len(members), generator=generator)[:PER_CLASS]]


def _images(dataset: Dataset) -> tuple[Tensor, Tensor]:
    """Every font's drawing of the first train classes, in grey."""
    train = dataset.where(split="train")
    codes = list(dict.fromkeys(train.labels.tolist()))[:CLASSES]
    rows = [row for row in range(len(train)) if int(train.labels[row]) in codes]
    pixels = torch.stack([train.images.open(row).decode()[:1] for row in rows]).float() / 127.5 - 1
    return pixels, torch.tensor([codes.index(int(train.labels[row])) for row in rows])


@torch.no_grad()
def _look(
    network: nn.Module, strategy: ChanceConstraints, images: Tensor, labels: Tensor, step: int
) -> list[CoverageSnapshot]:
    """Validate; a snapshot if the instance has now converged."""
    network.eval()
    points = normalise(network(images), "ball")
    instance = strategy.instance
    value = evaluate(points, labels, metrics=["map@r"], normalise="ball")["map@r"]
    if strategy.validated(step, value) is None:
        return []
    shape = (CLASSES, PROXIES, 2)
    converged, following = (
        normalise(part.detach().clone(), "ball").view(shape)
        for part in (strategy.best_proxies, strategy.objective.proxies)
    )
    nearest = torch.cdist(points, converged.flatten(0, 1)).view(len(points), CLASSES, PROXIES).amin(2)
    own = nearest[torch.arange(len(points)), labels]
    radius = torch.stack([own[labels == code].max() for code in range(CLASSES)])
    return [CoverageSnapshot(instance, step, points, labels, converged, following, radius)]


def coverage_numbers(shots: list[CoverageSnapshot]) -> list[dict[str, Any]]:
    return [
        {
            "instance": shot.instance,
            "step": shot.step,
            "radius": float(shot.radius.mean()),
            "radius of classes": shot.radius.tolist(),
            "converged": shot.converged.tolist(),
            "next": shot.following.tolist(),
            "points": shot.points.tolist(),
            "labels": shot.labels.tolist(),
        }
        for shot in shots
    ]


def draw_glyph_coverage(shots: list[CoverageSnapshot]) -> "Figure":
    """A panel per instance: classes as colours, converged proxies as squares, the next as stars, radii as circles."""
    caption = (
        "Dots: images of four glyphs in the plane, one colour a class. Squares: the proxies an instance has converged "
        "to, with the circle that covers their class. Stars: the next proxies, chosen where the old ones did not reach."
    )
    figure, axes = panels(1, len(shots), (2.7 * len(shots), 3.3), caption)
    for axis, shot in zip(axes[0], shots, strict=True):
        for code in range(CLASSES):
            colour, mine = COLOURS[code], shot.labels == code
            axis.scatter(*shot.points[mine].T.numpy(), s=8, color=colour, linewidths=0)
            axis.scatter(*shot.converged[code].T.numpy(), s=34, color=colour, marker="s", edgecolors="#222")
            axis.scatter(*shot.following[code].T.numpy(), s=60, color=colour, marker="*", edgecolors="#222")
            for centre in shot.converged[code]:
                _circle(axis, centre, float(shot.radius[code]), colour)
        mean = float(shot.radius.mean())
        axis.set(title=f"instance {shot.instance}, step {shot.step}: radius {mean:.2f}", aspect="equal")
        axis.title.set_fontsize(8)
        axis.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), xlabel="e₁ (embedding)", ylabel="e₂ (embedding)")
    return figure


def _circle(axis: Any, centre: Tensor, radius: float, colour: str) -> None:
    from matplotlib.patches import Circle

    axis.add_patch(Circle((float(centre[0]), float(centre[1])), radius, fill=False, color=colour, linewidth=0.5))
