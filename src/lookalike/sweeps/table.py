"""The table of a study: each row over its seeds, and against the baseline row in pairs of equal seed and query."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lookalike.evaluation import Result
from lookalike.evaluation.statistics.seeds import difference_by_seed, spread
from lookalike.evaluation.table import NOT_SHARES, aligned
from lookalike.runs import RunFolder
from lookalike.runs.measured import load_results
from lookalike.sweeps.grid import TRAIN, Cell, Study
from lookalike.sweeps.study import done, failure, folder_of


def gather(study: Study, out: Path) -> dict[str, Any]:
    """The content of study.json."""
    finished = [cell for cell in study.cells if done(out, cell)]  # once: other processes may be at work
    by_row = {row: [cell for cell in finished if cell.row == row] for row in study.rows}
    results = {row: {metric: _results(cells, out, metric) for metric in study.metrics} for row, cells in by_row.items()}
    rows = []
    for name, cells in by_row.items():
        planned = [cell for cell in study.cells if cell.row == name]
        row: dict[str, Any] = {"name": name, "metrics": {}, "differences": {}}
        row["seeds"] = [cell.recipe.seed for cell in cells]
        row["failed"] = {str(cell.recipe.seed): why for cell in planned if (why := failure(out, cell)) is not None}
        row["optimistic"] = planned[0].recipe.protocol.select == "test_max"
        row["seconds"] = [_seconds(folder_of(out, cell)) for cell in cells]
        for metric in study.metrics:
            own = results[name][metric]
            if own:
                row["metrics"][metric] = spread(list(own.values()), metric.removeprefix(TRAIN)).as_json()
            base = results[study.baseline][metric] if study.baseline not in (None, name) else {}
            gap = difference_by_seed(own, base, metric.removeprefix(TRAIN))
            if gap is not None:
                row["differences"][metric] = gap.as_json() | {"clear": gap.clear}
        rows.append(row)
    return {
        "title": study.title, "data": study.source, "baseline": study.baseline, "metrics": list(study.metrics),
        "cells": len(study.cells), "done": len(finished), "rows": rows,
    }  # fmt: skip


def _results(cells: Sequence[Cell], out: Path, metric: str) -> dict[int, Result]:
    """One result per seed: of the model on test, or on its train images."""
    role = "train" if metric.startswith(TRAIN) else "model"
    by_seed = {}
    for cell in cells:
        rows = [row for row in load_results(folder_of(out, cell)) if row.role == role]
        if rows and metric.removeprefix(TRAIN) in rows[0].result:
            by_seed[cell.recipe.seed] = rows[0].result
    return by_seed


def _seconds(folder: RunFolder) -> float:
    content = json.loads(folder.result.read_text(encoding="utf-8"))
    return float(content["training"]["seconds"])


def as_text(content: dict[str, Any]) -> str:
    """One table per metric; a star where both intervals of a difference leave out 0."""
    lines = [f"{content['title']}: {content['done']} of {content['cells']} cells"]
    for metric in content["metrics"]:
        lines += ["", *aligned([_head(content, metric), *(_line(row, metric) for row in content["rows"])])]
    for row in content["rows"]:
        lines += [f"{row['name']}, seed {seed}: {why}" for seed, why in row["failed"].items()]
    if any(row["optimistic"] for row in content["rows"]):
        lines += ["", "optimistic: the test images selected the weights (protocol.select = test_max)"]
    return "\n".join(lines)


def _head(content: dict[str, Any], metric: str) -> list[str]:
    base = f"− {content['baseline']}" if content["baseline"] else ""
    return [metric, "mean ± std", "over seeds", "over queries", base, *(["over seeds", "over queries"] * bool(base)
            or ["", ""]), ""]  # fmt: skip


def _line(row: dict[str, Any], metric: str) -> list[str]:
    name = row["name"] + (" (optimistic)" if row["optimistic"] else "")
    own, gap = row["metrics"].get(metric), row["differences"].get(metric)
    if own is None:
        return [name, "", "", "", "", "", "", ""]
    scale = 1 if metric.removeprefix(TRAIN) in NOT_SHARES else 100
    deviation = f" ± {scale * own['std']:.2f}" if "std" in own else ""
    cells = [f"{scale * own['mean']:.2f}{deviation}", *_spans(own, scale, "")]
    if gap is not None:
        cells += [f"{scale * gap['mean']:+.2f}", *_spans(gap, scale, "+"), "*" if gap["clear"] else ""]
    return [name, *cells, *[""] * (7 - len(cells))]


def _spans(spread: dict[str, Any], scale: int, sign: str) -> list[str]:
    spans = [spread.get(name) for name in ("over_seeds", "over_queries")]
    return [f"[{scale * span[0]:{sign}.2f}, {scale * span[1]:{sign}.2f}]" if span else "" for span in spans]
