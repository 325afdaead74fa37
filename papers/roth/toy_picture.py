"""The toy as numbers and as a picture: the segments, where each variant puts them, and what is left of the second axis.

On the circle a network that has given up one direction shows a short arc; one that has kept it goes round.
"""

from collections.abc import Mapping
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lookalike.analysis.figures import COLOURS, panels
from papers.roth.toy import PER_SEGMENT, Layout, ToyRun, segments

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 0  # the run whose embedding is drawn: seed 1


def toy_numbers(runs: Mapping[str, list[ToyRun]]) -> dict[str, dict[str, Any]]:
    """Mean and standard deviation over seeds: second singular values, and recall@1 of the segments never seen.

    `runs`: those of `run_toy`.
    """
    return {
        name: {
            "train": _spread([run.second for run in several]),
            "test": _spread([run.test_second for run in several]),
            "test recall@1": _spread([run.test_recall for run in several]),
        }
        for name, several in runs.items()
    }


def _spread(values: list[float]) -> dict[str, Any]:
    return {"mean": fmean(values), "std": stdev(values) if len(values) > 1 else 0.0, "seeds": values}


def draw_toy(runs: Mapping[str, list[ToyRun]], layout: Layout) -> "Figure":
    """The plane, the circle of every variant (seed 1), and the second singular value of all seeds.

    `runs`: those of `run_toy`, with the same `layout`.
    """
    caption = (
        "First: four segments to learn (dots) and four never seen (crosses). Circles: where seed 1 puts them; a short "
        "arc has lost a direction. Last: what the switch alone does, beside leaving out the attraction."
    )
    figure, axes = panels(2, 3, (8.2, 5.6), caption)
    train, test, labels = segments(layout, torch.Generator().manual_seed(SHOWN + 1))
    _points(axes[0, 0], train, test, labels)
    axes[0, 0].set(title=f"the plane ({layout})", xlabel="x (input)", ylabel="y (input)")
    places = [axes[0, 1], axes[0, 2], axes[1, 0], axes[1, 1]]
    for axis, (name, several) in zip(places, runs.items(), strict=True):
        run = several[SHOWN]
        _points(axis, run.train, run.test * 0.86, labels)
        axis.set(title=name, xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal")
        axis.set(xlabel="e₁ (embedding; test drawn inside)", ylabel="e₂")
    _shares(axes[1, 2], runs)
    for axis in axes.flat:
        axis.title.set_fontsize(8)
        axis.tick_params(labelsize=7)
    return figure


def _points(axis: Any, train: Tensor, test: Tensor, labels: Tensor) -> None:
    for segment in range(len(labels) // PER_SEGMENT):
        mine = labels == segment
        axis.scatter(*train[mine].T.numpy(), s=9, color=COLOURS[segment], linewidths=0)
        axis.scatter(*test[mine].T.numpy(), s=14, color=COLOURS[segment + 4], marker="x", linewidths=0.8)


def _shares(axis: Any, runs: Mapping[str, list[ToyRun]]) -> None:
    for row, (name, several) in enumerate(runs.items()):
        axis.scatter([run.second for run in several], [row] * len(several), s=9, color=COLOURS[0], alpha=0.6)
        axis.scatter(fmean(run.second for run in several), row, s=60, color="#222", marker="|")
        axis.text(0.008, row - 0.2, name, fontsize=7, va="bottom")
    axis.set(title="second singular value, all seeds", xlim=(0, 0.52), ylim=(len(runs) - 0.5, -0.7), yticks=[])
    axis.set_xlabel("share of the sum (0 a line, 0.5 round)")
