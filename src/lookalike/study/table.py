"""What a study found so far: each row over its seeds, and against the baseline row in pairs of equal seed and query."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lookalike.evaluation import Result
from lookalike.evaluation.statistics.seeds import difference_by_seed, spread
from lookalike.evaluation.table import NOT_SHARES, aligned
from lookalike.runs.folder import RunFolder
from lookalike.runs.measured import load_results
from lookalike.study.grid import TRAIN, Cell, Study
from lookalike.study.work import done, failure, place_of

Found = dict[int, Result]  # by seed


def gather(study: Study, out: Path) -> dict[str, Any]:
    """The content of study.json."""
    finished = [cell for cell in study.cells if done(out, cell)]  # once: others may be at work
    by_row = {row: [cell for cell in finished if cell.row == row] for row in study.rows}
    found = {row: {metric: _results(cells, out, metric) for metric in study.metrics} for row, cells in by_row.items()}
    rows = []
    for row, cells in by_row.items():
        told: dict[str, Any] = {"name": row, "metrics": {}, "differences": {}}
        wanted = [cell for cell in study.cells if cell.row == row]
        told["seeds"] = [cell.recipe.seed for cell in cells]
        told["failed"] = {str(cell.recipe.seed): why for cell in wanted if (why := failure(out, cell)) is not None}
        told["optimistic"] = wanted[0].recipe.protocol.select == "test_max"
        told["seconds"] = [_seconds(place_of(out, cell)) for cell in cells]
        for metric in study.metrics:
            mine = found[row][metric]
            if mine:
                told["metrics"][metric] = spread(list(mine.values()), metric.removeprefix(TRAIN)).as_json()
            base = found[study.baseline][metric] if study.baseline not in (None, row) else {}
            gap = difference_by_seed(mine, base, metric.removeprefix(TRAIN))
            if gap is not None:
                told["differences"][metric] = gap.as_json() | {"clear": gap.clear}
        rows.append(told)
    return {
        "title": study.title, "data": study.source, "baseline": study.baseline, "metrics": list(study.metrics),
        "cells": len(study.cells), "done": len(finished), "rows": rows,
    }  # fmt: skip


def _results(cells: Sequence[Cell], out: Path, metric: str) -> Found:
    """One result per seed: of the model on test, or on its train images."""
    role = "train" if metric.startswith(TRAIN) else "model"
    found = {}
    for cell in cells:
        rows = [row for row in load_results(RunFolder(place_of(out, cell))) if row.role == role]
        if rows and metric.removeprefix(TRAIN) in rows[0].result:
            found[cell.recipe.seed] = rows[0].result
    return found


def _seconds(place: Path) -> float:
    content = json.loads((place / "result.json").read_text(encoding="utf-8"))
    return float(content["training"]["seconds"])


def as_text(content: dict[str, Any]) -> str:
    """One table per metric; a star where both intervals of a difference leave out 0."""
    lines = [f"{content['title']}: {content['done']} of {content['cells']} cells"]
    for metric in content["metrics"]:
        lines += ["", *aligned([_head(content, metric), *(_line(row, metric) for row in content["rows"])])]
    for row in content["rows"]:
        lines += [f"{row['name']}, seed {seed}: {why}" for seed, why in row["failed"].items()]
    if any(row["optimistic"] for row in content["rows"]):
        lines += ["", "optimistic: the test images chose the weights (protocol.select = test_max)"]
    return "\n".join(lines)


def _head(content: dict[str, Any], metric: str) -> list[str]:
    base = f"− {content['baseline']}" if content["baseline"] else ""
    return [metric, "mean ± std", "over seeds", "over queries", base, *(["over seeds", "over queries"] * bool(base)
            or ["", ""]), ""]  # fmt: skip


def _line(row: dict[str, Any], metric: str) -> list[str]:
    name = row["name"] + (" (optimistic)" if row["optimistic"] else "")
    mine, gap = row["metrics"].get(metric), row["differences"].get(metric)
    if mine is None:
        return [name, "", "", "", "", "", "", ""]
    scale = 1 if metric.removeprefix(TRAIN) in NOT_SHARES else 100
    deviation = f" ± {scale * mine['std']:.2f}" if "std" in mine else ""
    cells = [f"{scale * mine['mean']:.2f}{deviation}", *_spans(mine, scale, "")]
    if gap is not None:
        cells += [f"{scale * gap['mean']:+.2f}", *_spans(gap, scale, "+"), "*" if gap["clear"] else ""]
    return [name, *cells, *[""] * (7 - len(cells))]


def _spans(found: dict[str, Any], scale: int, sign: str) -> list[str]:
    spans = [found.get(name) for name in ("over_seeds", "over_queries")]
    return [f"[{scale * span[0]:{sign}.2f}, {scale * span[1]:{sign}.2f}]" if span else "" for span in spans]
