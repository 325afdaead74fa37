"""Four statements one can see: a bound by top-k precision, FastAP beside AP, operator norms, and cover bounds."""

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from lookalike.analysis.figures import COLOURS, panels
from papers.ccp.covers import OVERLAPPING, SEPARATED, cover_gap, subset_gap
from papers.ccp.operator_norm import operator_norm
from papers.fastap.statements import BINS, average_precision, fastap_of, placed, scattered
from papers.top_k.statements import rankings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAMPLES = (100, 200, 500, 1000, 2000, 4000)
Numbers = dict[str, list[float]]


def theorem_numbers(cases: int = 150, seed: int = 0) -> dict[str, Numbers]:
    """What the four panels show; fewer `cases` than the table, so that single points can be seen; drawn by `seed`."""
    generator = torch.Generator().manual_seed(seed)
    return {
        "top-k": _top_k(cases, generator),
        "fastap": _fastap(cases, generator),
        "norms": _norms(cases // 2, generator),
        "covers": _covers(generator),
    }


def _top_k(cases: int, generator: torch.Generator) -> Numbers:
    several = rankings(cases, generator)
    bounds = [case.margin * (case.intruders() - case.missing()) for case in several]
    return {"bound": torch.cat(bounds).tolist(), "loss": torch.cat([case.loss() for case in several]).tolist()}


def _fastap(cases: int, generator: torch.Generator) -> Numbers:
    (centred, near), (between, far) = placed(cases, 1, generator), scattered(cases, generator)
    return {
        "AP, on centres": average_precision(centred, near).tolist(),
        "FastAP, on centres": fastap_of(centred, near, BINS).tolist(),
        "AP, between centres": average_precision(between, far).tolist(),
        "FastAP, between centres": fastap_of(between, far, BINS).tolist(),
    }


def _norms(cases: int, generator: torch.Generator) -> Numbers:
    numbers: Numbers = {"norm": [], "columns": [], "rows and columns": []}
    for _ in range(cases):
        rows, columns = torch.randint(1, 9, (2,), generator=generator).tolist()
        layer = nn.Linear(columns, rows, bias=False)
        with torch.no_grad():
            layer.weight.uniform_(0, 1, generator=generator).div_(layer.weight.sum(0).max())
        sums = [float(layer.weight.detach().sum(side).max()) for side in (0, 1)]
        numbers["norm"].append(operator_norm(layer, (columns,), generator))
        numbers["columns"].append(sums[0])
        numbers["rows and columns"].append(max(sums))
    return numbers


def _covers(generator: torch.Generator) -> Numbers:
    numbers: Numbers = {"samples": [float(size) for size in SAMPLES]}
    for name in ("4.1 seen", "4.1 allowed", "4.2 seen", "4.2 allowed"):
        numbers[name] = []
    for size in SAMPLES:
        first = [gap for _ in range(20) if (gap := cover_gap(OVERLAPPING, size, generator)) is not None]
        second = [subset_gap(SEPARATED, size, 0.03, generator) for _ in range(20)]
        for name, gaps in (("4.1", first), ("4.2", second)):
            numbers[f"{name} seen"].append(max(gap.seen for gap in gaps))
            numbers[f"{name} allowed"].append(min(gap.allowed for gap in gaps))
    return numbers


def draw_theorems(numbers: dict[str, Numbers]) -> "Figure":
    """The four panels; `numbers`: those of `theorem_numbers`."""
    caption = (
        "Top left: no loss lies below its bound. Top right: soft bins lower AP unless items sit on centres. Bottom: "
        "norms above the line refute the bound by column sums; cover bounds hold, and are very loose."
    )
    figure, axes = panels(2, 2, (8.2, 6.4), caption)
    _draw_top_k(axes[0, 0], numbers["top-k"])
    _draw_fastap(axes[0, 1], numbers["fastap"])
    _draw_norms(axes[1, 0], numbers["norms"])
    _draw_covers(axes[1, 1], numbers["covers"])
    for axis in axes.flat:
        axis.title.set_fontsize(8)
        axis.tick_params(labelsize=7)
        axis.legend(fontsize=7, frameon=False)
    return figure


def _line(axis: Any, end: float, label: str) -> None:
    axis.plot([0, end], [0, end], color="#777", linewidth=0.8, label=label)


def _draw_top_k(axis: Any, numbers: Numbers) -> None:
    _line(axis, max(numbers["bound"]), "theorems 1 and 3: ℓ ≥ bound")
    axis.scatter(
        numbers["bound"], numbers["loss"], s=7, color=COLOURS[0], alpha=0.6, linewidths=0, label="random rankings"
    )
    axis.set(title="top-k precision", xlabel="bound γ (ℓ_Prec − (k − n+)₊) (score)", ylabel="loss ℓ_k (score)")


def _draw_fastap(axis: Any, numbers: Numbers) -> None:
    _line(axis, 1, "FastAP = AP")
    for place, where in enumerate(("on centres", "between centres")):
        across, up = numbers[f"AP, {where}"], numbers[f"FastAP, {where}"]
        axis.scatter(across, up, s=9, color=COLOURS[place], marker="ox"[place], alpha=0.7, linewidths=0.8, label=where)
    axis.set(title=f"FastAP with {BINS} bins", xlabel="exact average precision (share)", ylabel="FastAP (share)")


def _draw_norms(axis: Any, numbers: Numbers) -> None:
    _line(axis, max(numbers["rows and columns"]), "norm = bound")
    for place, bound in enumerate(("columns", "rows and columns")):
        axis.scatter(
            numbers[bound],
            numbers["norm"],
            s=10,
            color=COLOURS[place],
            marker="xo"[place],
            alpha=0.7,
            linewidths=0.8,
            label=f"ω from {bound}",
        )
    axis.set(title="layers without negative weights", xlabel="ω, the largest sum of weights", ylabel="operator norm")


def _draw_covers(axis: Any, numbers: Numbers) -> None:
    for place, name in enumerate(("4.1", "4.2")):
        axis.plot(
            numbers["samples"], numbers[f"{name} allowed"], color=COLOURS[place], label=f"{name} allowed, least of 20"
        )
        seen = numbers[f"{name} seen"]
        axis.plot(numbers["samples"], seen, color=COLOURS[place], linestyle=":", label=f"{name} seen, most of 20")
    axis.set(xscale="log", yscale="log", title="propositions 4.1 and 4.2", xlabel="samples")
    axis.set_ylabel("distance from the true mean loss")
