"""Covering radius and distance between classes over the instances of a CCP run, from its log.

Gürbüz, Can, Alatan: Deep Metric Learning with Chance Constraints, WACV 2024, figure 2 [math E, F.9]: from instance to
instance classes should be covered more tightly, while they stay as far from each other.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lookalike.analysis.figures import COLOURS, panels, plain
from lookalike.errors import check
from lookalike.report.compare import collect
from lookalike.runs import Finished

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Instances = dict[str, list[dict[str, float]]]  # of every run


def instances(paths: Sequence[Path | str]) -> Instances:
    """instance, step, covering_radius, between_classes and their ratio, of all runs with CCP in the folders."""
    by_run = {name: _rows(run) for name, run in collect(paths).named_runs()}
    by_run = {name: rows for name, rows in by_run.items() if rows}
    check(bool(by_run), "none of these runs was trained with CCP: add the table [ccp] to its recipe")
    return by_run


def _rows(run: Finished) -> list[dict[str, float]]:
    """On validation classes, as in the paper, where the run measured those; otherwise on its pools of train images."""
    events = [event for event in run.log if "covering_radius" in event]
    unseen = all("unseen_covering_radius" in event for event in events)
    rows = []
    for event in events:
        radius, apart = (event[f"{'unseen_' * unseen}{name}"] for name in ("covering_radius", "between_classes"))
        rows.append(
            {
                "instance": event["instance"],
                "step": event["step"],
                "on_validation": float(unseen),
                "covering_radius": radius,
                "between_classes": apart,
                "ratio": radius / apart if apart else float("nan"),
            }
        )
    return rows


def _images(by_run: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    unseen = all(row["on_validation"] for rows in by_run.values() for row in rows)
    return "validation images" if unseen else "a fresh pool of train images"


def draw_coverage(by_run: Mapping[str, Sequence[Mapping[str, float]]]) -> "Figure":
    """Radius, distance between classes, and their ratio."""
    caption = (
        f"At the start of every instance, on {_images(by_run)}: the radius (left) should fall without the "
        "distance between classes (middle) falling with it; their ratio (right) then falls, too."
    )
    last = int(max(row["instance"] for rows in by_run.values() for row in rows))
    figure, axes = panels(1, 3, (9.0, 3.2), caption)
    parts = {
        "covering_radius": "covering radius (distance in the unit ball)",
        "between_classes": "distance between classes (in the unit ball)",
        "ratio": "radius / distance (ratio)",
    }
    for axis, (name, label) in zip(axes[0], parts.items(), strict=True):
        for place, (run, rows) in enumerate(by_run.items()):
            xs, ys = [row["instance"] for row in rows], [row[name] for row in rows]
            axis.plot(xs, ys, marker="o", markersize=3, color=COLOURS[place % len(COLOURS)], label=plain(run))
        axis.set(xlabel="instance (number)", ylabel=label)
        axis.set_xticks(range(0, last + 1, max(1, last // 8)))
    if len(by_run) > 1:
        axes[0, 0].legend(fontsize=6)
    return figure
