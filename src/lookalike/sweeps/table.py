"""The table of a study: each row over its runs, beside the figures of a paper, and against the baseline row in pairs of
equal seed, fold and query."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from lookalike.evaluation import Result
from lookalike.evaluation.statistics.seeds import difference_by_seed, spread
from lookalike.evaluation.table import NOT_SHARES, aligned
from lookalike.runs import RunFolder
from lookalike.runs.finished import NamedResult, load_results
from lookalike.runs.log import Event, read_log
from lookalike.sweeps import earlier
from lookalike.sweeps.grid import PARTS, Cell, Study, part_of
from lookalike.sweeps.study import done, failure, folder_of

INSTANCE = (
    "instance",
    "step",
    "covering_radius",
    "between_classes",
    "unseen_covering_radius",
    "unseen_between_classes",
)


def gather(study: Study, out: Path) -> dict[str, Any]:
    """The content of study.json, of the cells finished so far, here or earlier on another machine."""
    own, before = _own(study, out), earlier.read(out)
    return own if before is None else earlier.joined(own, before)


def _own(study: Study, out: Path) -> dict[str, Any]:
    finished = [cell for cell in study.cells if done(out, cell)]  # once: other processes may be at work
    by_row = {row: [cell for cell in finished if cell.row == row] for row in study.rows}
    known = {cell.key: load_results(folder_of(out, cell)) for cell in finished}
    results = {
        row: {metric: _results(study, cells, known, metric) for metric in study.metrics}
        for row, cells in by_row.items()
    }
    rows = []
    for name, cells in by_row.items():
        planned = [cell for cell in study.cells if cell.row == name]
        row: dict[str, Any] = {"name": name, "metrics": {}, "differences": {}}
        row["seeds"] = [cell.recipe.seed for cell in cells]
        row["failed"] = {
            cell.name.removeprefix(f"{name}, seed "): why for cell in planned if (why := failure(out, cell)) is not None
        }
        row["optimistic"] = planned[0].recipe.protocol.select == "test_max"
        row["published"] = study.published.get(name, {})
        row["seconds"] = [_training(folder_of(out, cell))["seconds"] for cell in cells]
        row["runs"] = [
            _run(cell, folder_of(out, cell), results[name], study) | _spectrum(known[cell.key]) for cell in cells
        ]
        for metric in study.metrics:
            own = results[name][metric]
            if own:
                row["metrics"][metric] = spread(list(own.values()), part_of(metric)[1]).as_json()
            if study.baseline not in (None, name):
                row["differences"] |= _gap(own, results[study.baseline][metric], metric)
        rows.append(row)
    pairs = [
        {"row": one, "against": other}
        | {
            "differences": {
                key: gap
                for metric in study.metrics
                for key, gap in _gap(results[one][metric], results[other][metric], metric).items()
            }
        }
        for one, other in study.compare
    ]
    return {
        "title": study.title,
        "data": study.source,
        "digest": study.digest,
        "baseline": study.baseline,
        "metrics": list(study.metrics),
        "cells": len(study.cells),
        "done": len(finished),
        "rows": rows,
        "compare": pairs,
        "note": study.note,
        "refused": dict(study.refused),
    }


def _gap(own: dict[int, Result], other: dict[int, Result], metric: str) -> dict[str, Any]:
    """The difference between two rows over the runs that both have, under the metric's name; empty: there are none."""
    gap = difference_by_seed(own, other, part_of(metric)[1])
    return {} if gap is None else {metric: gap.as_json() | {"clear": gap.clear}}


def _results(
    study: Study, cells: Sequence[Cell], known: Mapping[str, Sequence[NamedResult]], metric: str
) -> dict[int, Result]:
    """One result per run, by its number in the study: of the model on test, or of what stands before the colon."""
    part, name = part_of(metric)
    by_run = {}
    for cell in cells:
        rows = [row for row in known[cell.key] if PARTS[part] in row.name] if part else known[cell.key]
        if rows and name in rows[0].result:
            by_run[study.runs.index(cell.run)] = rows[0].result
    return by_run


def _run(cell: Cell, folder: RunFolder, results: Mapping[str, dict[int, Result]], study: Study) -> dict[str, Any]:
    """One training in numbers: what it cost, when it was best, the figures, the course of its validation, and the
    instances of CCP."""
    training, events = _training(folder), read_log(folder.log).events
    number = study.runs.index(cell.run)
    values = {name: by_run[number][part_of(name)[1]] for name, by_run in results.items() if number in by_run}
    run: dict[str, Any] = {"seed": cell.run[0]} | ({"fold": cell.run[1]} if cell.run[1] else {})
    run |= {name: training[name] for name in ("steps", "best_step", "seconds", "validation") if name in training}
    run |= {"metrics": values, "course": _course(events)}
    instances = [{key: event[key] for key in INSTANCE if key in event} for event in events if "instance" in event]
    return run | ({"instances": instances} if instances else {})


def _spectrum(results: Sequence[NamedResult]) -> dict[str, list[float]]:
    """The mean singular values of single train classes, where rho_class was measured."""
    curves = [row.result.curves.get("class_spectrum") for row in results if row.role == "train"]
    return next(({"class_spectrum": curve["value"].tolist()} for curve in curves if curve is not None), {})


def _course(events: Sequence[Event]) -> list[dict[str, float]]:
    """The validations at steps that double, one between each two of them, and the last."""
    seen = {event["step"]: event for event in events if event["event"] == "validation"}
    steps = sorted(seen)
    every = steps[1] if len(steps) > 1 else 1
    chosen = [step for step in steps if _round(step // every) or step == steps[-1]]
    return [{name: seen[step][name] for name in ("step", "recall@1", "map@r") if name in seen[step]} for step in chosen]


def _round(number: int) -> bool:
    """Whether a number is 0, 2^n or 3 · 2^n.

    >>> [number for number in range(26) if _round(number)]
    [0, 1, 2, 3, 4, 6, 8, 12, 16, 24]
    """
    return number in (0, 1) or number >> (number.bit_length() - 2) << (number.bit_length() - 2) == number


def _training(folder: RunFolder) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(folder.result.read_text(encoding="utf-8"))["training"]
    return content


def as_text(content: dict[str, Any]) -> str:
    """The `content` that `gather` gives, a table per metric; a star: both intervals of a difference leave out 0."""
    lines = [f"{content['title']}: {content['done']} of {content['cells']} cells"]
    for metric in content["metrics"]:
        printed = any(metric in row.get("published", {}) for row in content["rows"])
        table = [_head(content, metric, printed), *(_line(row, metric, printed) for row in content["rows"])]
        lines += ["", *aligned(table)]
    for row in content["rows"]:
        lines += [f"{row['name']}, seed {seed}: {why}" for seed, why in row["failed"].items()]
    lines += [f"row '{row}' cannot run: {why}" for row, why in content.get("refused", {}).items()]
    if any(row["optimistic"] for row in content["rows"]):
        lines += ["", "optimistic: the test images selected the weights (protocol.select = test_max)"]
    if content.get("note"):
        lines += ["", *fill(" ".join(content["note"].split()), 120).splitlines()]
    return "\n".join(lines)


def _head(content: dict[str, Any], metric: str, printed: bool) -> list[str]:
    base = f"− {content['baseline']}" if content["baseline"] else ""
    return [
        metric,
        "mean ± std",
        *(["paper", "− paper"] * printed),
        "over runs",
        "over queries",
        base,
        *(["over runs", "over queries"] * bool(base) or ["", ""]),
        "",
    ]


def _line(row: dict[str, Any], metric: str, printed: bool) -> list[str]:
    name = row["name"] + (" (optimistic)" if row["optimistic"] else "")
    own, gap = row["metrics"].get(metric), row["differences"].get(metric)
    scale = 1 if part_of(metric)[1] in NOT_SHARES else 100
    figure = row.get("published", {}).get(metric, ()) if printed else ()
    paper = " ± ".join(f"{scale * part:.2f}" for part in figure)
    if own is None:
        return [name, "", *([paper, ""] * printed), *[""] * 6]
    deviation = f" ± {scale * own['std']:.2f}" if "std" in own else ""
    cells = [f"{scale * own['mean']:.2f}{deviation}"]
    if printed:
        cells += [paper, f"{scale * (own['mean'] - figure[0]):+.2f}" if figure else ""]
    cells += _spans(own, scale, "")
    if gap is not None:
        cells += [f"{scale * gap['mean']:+.2f}", *_spans(gap, scale, "+"), "*" if gap["clear"] else ""]
    return [name, *cells, *[""] * (7 + 2 * printed - len(cells))]


def _spans(spread: dict[str, Any], scale: int, sign: str) -> list[str]:
    spans = [spread.get(name) for name in ("over_seeds", "over_queries")]
    return [f"[{scale * span[0]:{sign}.2f}, {scale * span[1]:{sign}.2f}]" if span else "" for span in spans]
