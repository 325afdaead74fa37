"""Recall against one setting over many runs: batch size, embedding size, or any other key of the recipes.

Wang, Han, Huang, Dong, Scott: Multi-Similarity Loss with General Pair Weighting for Deep Metric Learning, CVPR 2019,
tables of the embedding size (`model.dim`) and figure 3, the batch size (`sampler.batch_size`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookalike.analysis.figures import COLOURS, panels, plain
from lookalike.errors import check, unknown
from lookalike.evaluation.statistics.seeds import spread
from lookalike.report.compare import Method, collect

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def setting_effect(paths: Sequence[Path | str], key: str, metric: str = "recall@1") -> dict[str, Any]:
    """The metric at every value of a setting, in one line for each combination of the other settings."""
    methods = [method for method in collect(paths).methods if all(metric in each for each in method.results().values())]
    check(bool(methods), f"none of these runs has measured '{metric}'")
    known = {name for method in methods for name in method.settings}
    if key not in known:
        raise unknown("setting of these runs", key, known)
    rows = [method for method in methods if key in method.settings]
    lines: dict[str, list[dict[str, Any]]] = {}
    for method in rows:
        point = {"value": method.settings[key], **spread(list(method.results().values()), metric).as_json()}
        lines.setdefault(_others(method, rows, key), []).append(point)
    for points in lines.values():
        points.sort(key=lambda point: (isinstance(point["value"], str), point["value"]))
    return {"key": key, "metric": metric, "lines": lines}


def _others(method: Method, rows: Sequence[Method], key: str) -> str:
    """The other settings in which runs differ, as words."""
    mine = method.settings
    differing = [name for name in mine if name != key and any(other.settings.get(name) != mine[name] for other in rows)]
    return ", ".join(f"{name} {mine[name]}" for name in differing) or "all else equal"


def draw_setting_effect(numbers: dict[str, Any]) -> "Figure":
    """One line per combination; whiskers are 95% intervals."""
    caption = (
        f"How {numbers['metric']} changes with {numbers['key']} while all else stays the same; whiskers are 95 % "
        "intervals (over seeds where there are several, else over queries)."
    )
    figure, axes = panels(1, 1, (5.6, 3.8), caption)
    axis = axes[0, 0]
    values = list(dict.fromkeys(point["value"] for points in numbers["lines"].values() for point in points))
    values.sort(key=lambda value: (isinstance(value, str), value))
    for place, (name, points) in enumerate(numbers["lines"].items()):
        where = [values.index(point["value"]) for point in points]
        means = [100 * point["mean"] for point in points]
        ends = [point.get("over_seeds") or point.get("over_queries") or (point["mean"],) * 2 for point in points]
        reach = [
            [mean - 100 * low for mean, (low, _) in zip(means, ends, strict=True)],
            [100 * high - mean for mean, (_, high) in zip(means, ends, strict=True)],
        ]
        colour = COLOURS[place % len(COLOURS)]
        axis.errorbar(where, means, yerr=reach, color=colour, marker="o", markersize=4, capsize=3, label=plain(name))
    axis.set(xlabel=f"{numbers['key']} (value)", ylabel=f"{numbers['metric']} (%)")
    axis.set_xticks(range(len(values)), [plain(str(value)) for value in values])
    if len(numbers["lines"]) > 1:
        axis.legend(fontsize=7)
    return figure
