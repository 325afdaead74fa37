"""A study that goes on elsewhere: what another machine has done of it, as its study.json says.

The file is enough: cells it has are not run again, its runs join the table. Only the values of single queries stay
behind. So the interval over queries of a figure that rests on both parts is as wide as the mean of their intervals, by
runs: the queries are the same, and a mean of two figures never varies more than the two do in the mean.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lookalike.errors import UserError, check
from lookalike.evaluation.statistics.seeds import spread_of
from lookalike.files import write_text
from lookalike.sweeps.grid import Study

FILE = "earlier.json"
Content = Mapping[str, Any]  # of a study.json
Run = tuple[int, int]  # seed and fold


def adopt(study: Study, file: Path, out: Path) -> None:
    """From now on the folder of the study knows what `file` has; what it has adopted before stays."""
    if (out / FILE).is_file():
        return
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        joined({"baseline": None, "metrics": study.metrics, "rows": content["rows"], "compare": []}, content)
        digest = content["digest"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{file} is not the study.json of a study: give the one that another machine wrote") from None
    check(digest == study.digest, f"{file} is of another study, or its recipe has changed since: leave out --earlier")
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / FILE, json.dumps(content))


def read(out: Path) -> Content | None:
    """What was adopted."""
    file = out / FILE
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def remaining(study: Study, out: Path) -> Study:
    """The study with the cells that nobody has done before."""
    known = {row["name"]: _runs(row) for row in (read(out) or {"rows": []})["rows"]}
    return replace(study, cells=tuple(cell for cell in study.cells if cell.run not in known.get(cell.row, {})))


def joined(own: Content, before: Content) -> dict[str, Any]:
    """One content of a study.json from two: that of this machine's cells, and what was adopted."""
    base, earlier = own["baseline"], {row["name"]: row for row in before["rows"]}
    runs = {row["name"]: _runs(earlier.get(row["name"], {}), row) for row in own["rows"]}
    rows = []
    for row in own["rows"]:
        name, parts = row["name"], [earlier.get(row["name"], {}), row]
        rows.append(
            row
            | {
                "seeds": [seed for seed, _ in runs[name]],
                "seconds": [run["seconds"] for run in runs[name].values()],
                "runs": list(runs[name].values()),
                "metrics": {
                    metric: _spread(values.values(), _parts(parts, "metrics", metric))
                    for metric in own["metrics"]
                    if (values := _values(runs[name], metric))
                },
                "differences": {} if base in (None, name) else _gaps(runs[name], runs[base], parts, own["metrics"]),
            }
        )
    known = {(pair["row"], pair["against"]): pair for pair in before["compare"]}
    compare = []
    for pair in own["compare"]:
        parts = [known.get((pair["row"], pair["against"]), {}), pair]
        gaps = _gaps(runs[pair["row"]], runs[pair["against"]], parts, own["metrics"])
        compare.append(pair | {"differences": gaps})
    return {**own, "rows": rows, "compare": compare, "done": sum(map(len, runs.values()))}


def _runs(*parts: Content) -> dict[Run, Content]:
    """The runs of parts of a row in the order of the study; of a run that two of them have, the last."""
    every = {(run["seed"], run.get("fold", 0)): run for part in parts for run in part.get("runs", [])}
    return dict(sorted(every.items()))


def _values(runs: Mapping[Run, Content], metric: str) -> dict[Run, float]:
    return {key: run["metrics"][metric] for key, run in runs.items() if metric in run["metrics"]}


def _gaps(
    runs: Mapping[Run, Content], others: Mapping[Run, Content], parts: Sequence[Content], metrics: Sequence[str]
) -> dict[str, Any]:
    """How much higher a row is than another, over the runs that both have, by metric."""
    gaps = {}
    for metric in metrics:
        mine, theirs = _values(runs, metric), _values(others, metric)
        values = [mine[key] - theirs[key] for key in mine if key in theirs]
        if values:
            gaps[metric] = _spread(values, _parts(parts, "differences", metric), difference=True)
    return gaps


def _parts(parts: Sequence[Content], kind: str, metric: str) -> list[Content]:
    return [spread for part in parts if (spread := part.get(kind, {}).get(metric))]


def _spread(values: Iterable[float], parts: Sequence[Content], difference: bool = False) -> dict[str, Any]:
    """Of the values of all runs; around their mean, the interval over queries is as wide as those of the parts."""
    whole = spread_of(list(values))
    if parts and all("over_queries" in part for part in parts):
        runs = sum(part["seeds"] for part in parts)
        below, above = (
            sum(part["seeds"] * (part["over_queries"][end] - part["mean"]) for part in parts) / runs for end in (0, 1)
        )
        whole = replace(whole, over_queries=(whole.mean + below, whole.mean + above))
    return whole.as_json() | ({"clear": whole.clear} if difference else {})
