"""Batches as pictures: the classes and images in them, the distances that meet, and the images themselves.

Small data are drawn whole, a column per class and a square per image, with the batch coloured. Of large data only the
classes in the batch are drawn.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Integer, UInt8
from torch import Tensor

from lookalike.analysis.batches import batch_distances
from lookalike.analysis.figures import COLOURS, FAINT, panels, plain
from lookalike.errors import check

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 3  # batches side by side
WHOLE = 24  # classes up to which data are drawn whole
NO_CATEGORY = "none"


def draw_batches(
    batches: list[list[int]],
    labels: Integer[Tensor, " n"],
    categories: Integer[Tensor, " n"] | None = None,
    category_names: tuple[str, ...] = (),
) -> "Figure":
    """The first three batches as composition grids: a column per class, a square per image, coloured by category.

    `categories`: of every image, −1: none; None leaves colours out. `category_names`: by number.
    """
    check(len(batches) > 0, "there are no batches to draw")
    whole = len(torch.unique(labels)) <= WHOLE
    caption = (
        f"{'All data; grey: not in the batch. ' if whole else ''}A column is a class, a square an image"
        f"{', a colour a category' if categories is not None else ''}; a number: how often an image is in the batch."
    )
    figure, axes = panels(1, SHOWN, (8.2, 2.6), caption)
    groups = torch.zeros_like(labels) if categories is None else categories
    for number, axis in enumerate(axes[0]):
        if number >= len(batches):
            axis.axis("off")
            continue
        _grid(axis, batches[number], labels, groups, whole)
        axis.set(xticks=[], yticks=[], xlabel="classes")
        axis.spines[:].set_visible(False)
        axis.set_title(f"batch {number + 1}", fontsize=8)
    axes[0, 0].set_ylabel("images of a class")
    if categories is not None:
        _legend(figure, [row for batch in batches[:SHOWN] for row in batch], groups, category_names)
    return figure


def _grid(axis: Any, batch: list[int], labels: Tensor, groups: Tensor, whole: bool) -> None:
    from matplotlib.patches import Rectangle

    often = Counter(batch)
    rows = list(range(len(labels))) if whole else sorted(often)
    rows.sort(key=lambda row: (int(groups[row]), int(labels[row]), row))
    across, height, tallest = -1.0, 0, 0
    last: tuple[int, int] | None = None
    for row in rows:
        here = (int(groups[row]), int(labels[row]))
        if here != last:
            across, height = across + (1.0 if last is None or here[0] == last[0] else 1.6), 0
        colour = COLOURS[here[0] % len(COLOURS)] if row in often else FAINT
        axis.add_patch(Rectangle((across + 0.06, height + 0.06), 0.88, 0.88, color=colour, linewidth=0))
        if often[row] > 1:
            axis.text(across + 0.5, height + 0.46, str(often[row]), ha="center", va="center", fontsize=6, color="white")
        last, height = here, height + 1
        tallest = max(tallest, height)
    axis.set(xlim=(-0.3, across + 1.3), ylim=(-0.3, tallest + 0.3), aspect="equal")


def _legend(figure: "Figure", rows: list[int], groups: Tensor, names: tuple[str, ...]) -> None:
    from matplotlib.patches import Patch

    present = sorted({int(groups[row]) for row in rows})
    titles = [NO_CATEGORY if group < 0 else plain(names[group]) if names else f"category {group}" for group in present]
    colours = [COLOURS[group % len(COLOURS)] for group in present]
    patches = [Patch(color=colour, label=title) for colour, title in zip(colours, titles, strict=True)]
    figure.legend(handles=patches, loc="outside upper center", ncols=min(6, len(patches)), fontsize=7, frameon=False)


def draw_places(batches: list[list[int]], labels: Integer[Tensor, " n"], vectors: Float[Tensor, "n d"]) -> "Figure":
    """The first three batches in a plane, `vectors` being n × 2: all images grey, the batch's coloured by class."""
    check(vectors.shape[1] == 2, f"only points of a plane can be drawn, not {vectors.shape[1]} dimensions")
    caption = (
        "All images as grey points of their embedding, those of one batch coloured by class: how far does it reach?"
    )
    figure, axes = panels(1, SHOWN, (8.2, 2.7), caption)
    for number, axis in enumerate(axes[0]):
        axis.scatter(*vectors.T.numpy(), s=7, color=FAINT, linewidths=0)
        if number < len(batches):
            batch = torch.tensor(batches[number])
            colours = [COLOURS[int(label) % len(COLOURS)] for label in labels[batch]]
            axis.scatter(*vectors[batch].T.numpy(), s=20, c=colours, edgecolors="#333", linewidths=0.5)
        axis.set_title(f"batch {number + 1}", fontsize=8)
        axis.set_xlabel("first coordinate")
        axis.tick_params(labelsize=6)
    axes[0, 0].set_ylabel("second coordinate")
    return figure


def draw_distances(
    several: dict[str, list[list[int]]], labels: Integer[Tensor, " n"], vectors: Float[Tensor, "n d"], what: str
) -> "Figure":
    """Histograms of the distances of positive and negative pairs that meet under each sampler.

    `several`: the batches of each, by name. `what`: what the vectors are, in words, for the caption.
    """
    check(len(several) > 0, "there are no batches to draw")
    caption = (
        f"Distances of the pairs that meet in a batch, of {what}. The more the two overlap, the more a batch has to "
        "teach; a sampler that moves the orange to the left brings harder negatives."
    )
    figure, axes = panels(len(several), 1, (6.4, 0.8 + 1.2 * len(several)), caption, sharex=True)
    for axis, (name, batches) in zip(axes[:, 0], several.items(), strict=True):
        sides = zip(COLOURS[:2], ("same class", "other class"), batch_distances(batches, labels, vectors), strict=True)
        for colour, side, values in sides:
            if len(values):
                axis.hist(values.numpy(), bins=40, density=True, color=colour, alpha=0.55, label=side)
        axis.set_ylabel(f"{name}\ndensity", fontsize=7)
        axis.tick_params(labelsize=7)
    axes[0, 0].legend(fontsize=7, frameon=False)
    axes[-1, 0].set_xlabel(f"Euclidean distance ({what})")
    return figure


def draw_contact_sheet(
    images: list[UInt8[Tensor, "3 _ _"]], labels: Integer[Tensor, " m"], names: tuple[str, ...]
) -> "Figure":
    """The `images` of one batch, 3 × h × w each, a row of them per class, the class's name beside it.

    `labels`: of these images. `names`: of all classes, by number.
    """
    check(len(images) == len(labels), f"{len(images)} images for {len(labels)} labels: give one per label")
    present, counts = torch.unique(labels, return_counts=True)
    widest = int(counts.max())
    side = 1 if widest > 6 or len(present) < 8 else 2  # two classes side by side keep the sheet from growing long
    rows = -(-len(present) // side)
    caption = "The images of one batch, one class after another, named at the left: are classes told apart at a glance?"
    figure, axes = panels(rows, side * widest, (0.62 * side * widest + 0.9, 0.66 * rows + 0.5), caption)
    for axis in axes.flat:
        axis.axis("off")
    for place, label in enumerate(present.tolist()):
        start = (place // rows) * widest
        members = (labels == label).nonzero().flatten().tolist()
        for column, member in enumerate(members):
            axes[place % rows, start + column].imshow(images[member].permute(1, 2, 0).numpy())
        first = axes[place % rows, start]
        name = plain(names[label])
        short = name if len(name) <= 14 else name[:13] + "…"
        first.text(-0.12, 0.5, short, transform=first.transAxes, ha="right", va="center", fontsize=8)
    return figure
