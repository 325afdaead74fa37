"""Pair weights of a whole batch as maps: which pairs a loss pulls together and pushes apart, and which it ignores."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jaxtyping import Float, Integer
from torch import Tensor, nn

from lookalike.analysis.figures import panels
from lookalike.analysis.weighting import pair_gradients
from lookalike.errors import check
from lookalike.geometry import compare
from lookalike.targets import Pairs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PER_ROW = 4


def weight_maps(
    several: Mapping[str, nn.Module], embeddings: Float[Tensor, "n d"], labels: Integer[Tensor, " n"]
) -> dict[str, Float[Tensor, "n n"]]:
    """∂L/∂S of every pair under `several` losses by name: below 0 it is pulled together, above 0 pushed apart."""
    return {name: pair_gradients(loss, embeddings, labels) for name, loss in several.items()}


def map_numbers(maps: Mapping[str, Tensor], labels: Integer[Tensor, " n"]) -> dict[str, dict[str, float]]:
    """How each loss spreads its weight: the share of pairs it moves, and what the heaviest tenth of them carries.

    `maps`: those of `weight_maps`.
    """
    numbers: dict[str, dict[str, float]] = {}
    pairs = Pairs.within(labels)
    for name, weights in maps.items():
        numbers[name] = {}
        for side, mask in (("positive", pairs.positive), ("negative", pairs.negative)):
            values = weights[mask].abs().sort(descending=True).values
            total = float(values.sum())
            tenth = float(values[: max(1, len(values) // 10)].sum()) if len(values) else 0.0
            numbers[name][f"{side} pairs moved"] = float((values > 0).double().mean()) if len(values) else 0.0
            numbers[name][f"weight on the heaviest tenth of {side} pairs"] = tenth / total if total else 0.0
    return numbers


def draw_weight_maps(
    maps: Mapping[str, Tensor], embeddings: Float[Tensor, "n d"], labels: Integer[Tensor, " n"]
) -> "Figure":
    """The similarities of the batch, then the `maps` of `weight_maps`; rows and columns are sorted by class."""
    check(len(maps) > 0, "there are no weights to draw: give at least one loss")
    order = labels.argsort(stable=True)
    borders = (labels[order].diff().nonzero().flatten() + 0.5).tolist()
    columns = min(PER_ROW, len(maps) + 1)
    rows = -(-(len(maps) + 1) // columns)
    caption = (
        "Each square is a pair of images of one batch; blocks on the diagonal are classes. Blue: pulled together, red: "
        "pushed apart, white: ignored; every map is scaled to its own largest weight."
    )
    figure, axes = panels(rows, columns, (2.3 * columns + 0.6, 2.45 * rows + 0.5), caption)
    places = list(axes.flat)
    similar = compare(embeddings, None, "sphere")[order][:, order]
    _map(figure, places[0], similar, ("similarity (cosine)", "PuOr", 1.0), borders)
    for axis, (name, weights) in zip(places[1:], maps.items(), strict=False):
        largest = float(weights.abs().max())
        _map(figure, axis, weights[order][:, order] / (largest or 1.0), (name, "RdBu_r", 1.0), borders)
    for axis in places[len(maps) + 1 :]:
        axis.axis("off")
    for row in axes:
        row[0].set_ylabel("anchor (row of the batch)")
    for axis in places[max(0, len(maps) + 1 - columns) : len(maps) + 1]:
        axis.set_xlabel("candidate (row of the batch)")
    return figure


def _map(figure: "Figure", axis: Any, values: Tensor, style: tuple[str, str, float], borders: list[float]) -> None:
    title, colours, limit = style
    image = axis.imshow(values.double().numpy(), cmap=colours, vmin=-limit, vmax=limit, interpolation="nearest")
    for border in borders:
        axis.axhline(border, color="#777", linewidth=0.5)
        axis.axvline(border, color="#777", linewidth=0.5)
    axis.set_title(title, fontsize=8)
    axis.tick_params(labelsize=6)
    bar = figure.colorbar(image, ax=axis, shrink=0.75, ticks=[-limit, 0, limit])
    bar.ax.tick_params(labelsize=6)
