"""Draws what each sampler puts into a batch: `python docs/draw_samplers.py` writes docs/pictures/samplers/NAME.png.

Samplers of labels: the dataset, a column per class and a square per image, three times; the images of one batch are
coloured, a number says how often an image is in it. Samplers of embeddings: the bank as points, the batch coloured.
"""

from collections import Counter
from pathlib import Path

import matplotlib
import torch
from matplotlib import pyplot
from matplotlib.axes import Axes

from lookalike import samplers

FOLDER = Path(__file__).parent / "pictures" / "samplers"
SIZES = [6, 9, 4, 7, 1, 8, 5, 10, 3, 6, 7, 2]  # images of each class; four classes per category
LABELS = torch.arange(12).repeat_interleave(torch.tensor(SIZES))
CATEGORIES = LABELS // 4
SETTINGS = {
    "category_pairs": {"batch_size": 12},
    "category_random": {"batch_size": 12},
    "class_balanced": {"batch_size": 12, "per_class": 3},
    "class_chunks": {"batch_size": 12, "per_class": 3},
    "class_queue": {"batch_size": 12, "per_class": 3},
    "class_random": {"batch_size": 12},
    "one_per_class": {"batch_size": 8},
}
PARTLY = {"batch_size": 12, "categories": torch.where(CATEGORIES == 2, -1, CATEGORIES)}
ABSENT, COLOURS = "#e3e3e8", matplotlib.colormaps["tab20"].colors[:12]


def draw_dataset(axes: Axes, batch: list[int], names: dict[int, str]) -> None:
    """The dataset as columns of squares, the images of the batch coloured."""
    often = Counter(batch)
    place = Counter()
    for image, label in enumerate(LABELS.tolist()):
        x, y = label + 0.6 * (label // 4), place[label]
        place[label] += 1
        colour = COLOURS[label] if image in often else ABSENT
        axes.add_patch(pyplot.Rectangle((x + 0.06, y + 0.06), 0.88, 0.88, color=colour, linewidth=0))
        if often[image] > 1:
            axes.text(x + 0.5, y + 0.46, str(often[image]), ha="center", va="center", fontsize=6.5)
    for category, name in names.items():
        axes.text(4.6 * category + 2, -0.35, name, ha="center", va="top", fontsize=7, color="#555")
    axes.set(xlim=(-1.2, 14.4), ylim=(-1.5, 10.2), aspect="equal")
    axes.axis("off")


def draw_labels(name: str, settings: dict, unlabelled: bool = False) -> None:
    facts = {"labels": LABELS, "categories": CATEGORIES, "seed": 4}
    batches = list(samplers.build(name, **(facts | settings)))
    names = {number: f"category {number}" for number in range(3)}
    if unlabelled:
        names[2] = "no category"
    figure, panels = pyplot.subplots(1, 3, figsize=(7.6, 2.2), layout="constrained")
    for number, (axes, batch) in enumerate(zip(panels, batches, strict=False)):
        draw_dataset(axes, batch, names)
        axes.set_title(f"batch {number + 1} of {len(batches)}", fontsize=8)
    save(figure, f"{name}_partly" if unlabelled else name)


def bank_of_clusters() -> tuple[torch.Tensor, samplers.EmbeddingBank]:
    """Twelve classes of twenty images on a plane, some crowded together, some far out."""
    generator = torch.Generator().manual_seed(11)
    labels = torch.arange(240) // 20
    centres = torch.randn(12, 2, generator=generator) * torch.linspace(0.4, 2.2, 12)[:, None]
    bank = samplers.EmbeddingBank(240, 2)
    bank.update(torch.arange(240), centres[labels] + 0.28 * torch.randn(240, 2, generator=generator))
    return labels, bank


def draw_embeddings(name: str) -> None:
    labels, bank = bank_of_clusters()
    sizes = {"batch_size": 12, "per_class": 2, "big_batch": 120}
    chosen = samplers.build(name, labels=labels, bank=bank, seed=2, **sizes)
    random = samplers.ClassBalanced(labels, 12, 2, seed=2)
    panels_of = [("class_balanced, for comparison", random), (f"{name}, batch 1", chosen), (f"{name}, batch 2", chosen)]
    figure, panels = pyplot.subplots(1, 3, figsize=(7.6, 2.2), layout="constrained")
    for number, (axes, (title, sampler)) in enumerate(zip(panels, panels_of, strict=True)):
        batch = list(sampler.course.plan())[max(0, number - 1)]
        axes.scatter(*bank.vectors.T, s=7, color=ABSENT, linewidths=0)
        colours = [COLOURS[label] for label in labels[batch].tolist()]
        axes.scatter(*bank.vectors[batch].T, s=20, c=colours, edgecolors="#333", linewidths=0.5)
        axes.set_title(title, fontsize=8)
        axes.set_aspect("equal")
        axes.axis("off")
    save(figure, name)


def save(figure: pyplot.Figure, name: str) -> None:
    figure.savefig(FOLDER / f"{name}.png", dpi=130, metadata={"Software": None}, pil_kwargs={"optimize": True})
    pyplot.close(figure)


def main() -> None:
    matplotlib.use("agg")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, settings in SETTINGS.items():
        draw_labels(name, settings)
    draw_labels("category_pairs", PARTLY, unlabelled=True)
    for name in filter(samplers.needs_bank, samplers.names()):
        draw_embeddings(name)


if __name__ == "__main__":
    main()
