"""tune.html: the history of a search, every setting against its outcome, and the landscape of pairs of settings.

The landscape is figure 3 of Gürbüz, Can, Alatan: Deep Metric Learning with Chance Constraints, WACV 2024, from trials
wherever the search put them instead of from a grid.
"""

import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from lookalike.report.charts.chart import Axis, Chart, Series, around
from lookalike.report.charts.files import save_charts
from lookalike.report.charts.ticks import short
from lookalike.report.markup import Html, element, join
from lookalike.report.page.page import Section, figures, page, today
from lookalike.report.page.tables import Cell, Number, sortable, written
from lookalike.sweeps.ranges import Range
from lookalike.sweeps.tune import SearchResult

METRIC = Axis("validation map@r (%)", 0.0, 1.0, percent=True)
QUARTERS = ("best quarter", "second", "third", "last quarter")
PAIRS = 6  # landscapes at most
Trials = Sequence[dict[str, Any]]


def write(result: SearchResult, ranges: Sequence[Range], out: Path) -> Path:
    """OUT/tune.html, OUT/trials.json and every figure as SVG and numbers: the `result` of a search of `ranges`."""
    complete = [trial for trial in result.trials if trial["state"] == "complete"]
    possible = [_history(complete), *(_alone(each, complete) for each in ranges)]
    numeric = [each for each in ranges if not each.choices]
    possible += [_landscape(one, other, complete) for one, other in list(combinations(numeric, 2))[:PAIRS]]
    charts = [chart for chart in possible if chart is not None]
    save_charts(charts, out / "figures")
    (out / "trials.json").write_text(json.dumps(result.trials, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    target = out / "tune.html"
    target.write_text(_page(result, ranges, charts), encoding="utf-8")
    return target


def _page(result: SearchResult, ranges: Sequence[Range], charts: Sequence[Chart]) -> str:
    best, states = result.best, [trial["state"] for trial in result.trials]
    settings = ", ".join(f"{key} {written(value)}" for key, value in best["params"].items())
    words = f"Trial {best['number']} is the best: validation map@r {100 * best['value']:.2f}%, with {settings}."
    lead = join(
        element("p", words, class_="lead"), element("p", "Its recipe is best.toml beside this page.", class_="note")
    )
    alone = [chart for chart in charts if chart.name.startswith("setting_")]
    pairs = [chart for chart in charts if chart.name.startswith("landscape_")]
    history = [chart for chart in charts if chart.name == "history"]
    sections = [
        Section("history", "How the search went", join(lead, figures(*history))),
        Section("settings", "Every setting alone", figures(*alone)),
        Section("landscape", "Pairs of settings", figures(*pairs)),
        Section("trials", "All trials", _trials(result.trials, ranges)),
    ]
    counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    subtitle = f"{', '.join(counts)} · {today()}"
    return page("Search for settings", subtitle, sections)


def _trials(trials: Trials, ranges: Sequence[Range]) -> Html:
    rows: list[list[Cell]] = []
    for trial in trials:
        value = trial["value"]
        figure = Number("–", -1.0) if value is None else Number(f"{100 * value:.2f}", value)
        params = [written(trial["params"][each.key]) if each.key in trial["params"] else "–" for each in ranges]
        rows.append([Number(str(trial["number"]), trial["number"]), str(trial["state"]), figure, *params])
    heads = ["trial", "state", "map@r (%)", *(each.key for each in ranges)]
    return sortable("trials", "A click on a heading sorts; pruned trials fell behind half of the others", heads, rows)


def _values(values: Sequence[float]) -> Axis:
    low, high = around(values, least=0.01)
    return Axis(METRIC.label, max(0.0, low), min(1.0, high), percent=True)


def _history(complete: Trials) -> Chart:
    numbers, values = [float(trial["number"]) for trial in complete], [float(trial["value"]) for trial in complete]
    best = [max(values[: place + 1]) for place in range(len(values))]
    return Chart(
        "history",
        "History of the search",
        "A line that has been flat for long says that more trials will hardly help.",
        Axis("trial", -0.5, max(numbers) + 0.5),
        _values(values),
        (
            Series("trials", tuple(numbers), tuple(values), "dots", 1),
            Series("best so far", tuple(numbers), tuple(best), "line", 0),
        ),
    )


def _alone(each: Range, complete: Trials) -> Chart | None:
    known = [trial for trial in complete if each.key in trial["params"]]
    if not known:
        return None
    values = [float(trial["value"]) for trial in known]
    name, title = f"setting_{each.key.replace('.', '_')}", f"{each.key} and validation map@r"
    if each.choices:
        places = [float(each.choices.index(_hashed(trial["params"][each.key]))) for trial in known]
        names = Axis("", -0.6, len(each.choices) - 0.4, names=tuple(map(str, each.choices)))
        caption = "Farther right is better; a choice whose dots all lie left of the others' can be given up."
        return Chart(name, title, caption, _values(values), names, (Series("", tuple(values), tuple(places), "dots"),))
    xs = tuple(float(trial["params"][each.key]) for trial in known)
    best = known[values.index(max(values))]["params"][each.key]
    caption = f"Where the dots are highest is where to look; the best lies at {short(float(best))}."
    return Chart(name, title, caption, _axis(each), _values(values), (Series("", xs, tuple(values), "dots"),))


def _hashed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _axis(each: Range) -> Axis:
    assert each.low is not None and each.high is not None  # noqa: PT018
    if each.log:
        return Axis(f"{each.key} (log scale)", each.low / 1.1, each.high * 1.1, log=True)
    return Axis(each.key, *around([float(each.low), float(each.high)]))


def _landscape(one: Range, other: Range, complete: Trials) -> Chart | None:
    """Trials where their two settings lie, in quarters of their rank."""
    known = [trial for trial in complete if one.key in trial["params"] and other.key in trial["params"]]
    if len(known) < len(QUARTERS):
        return None
    ranked = sorted(known, key=lambda trial: -trial["value"])
    series = []
    for colour, name in enumerate(QUARTERS):
        part = ranked[len(ranked) * colour // 4 : len(ranked) * (colour + 1) // 4]
        xs, ys = (tuple(float(trial["params"][each.key]) for trial in part) for each in (one, other))
        series.append(Series(name, xs, ys, "dots", colour))
    return Chart(
        f"landscape_{one.key}_{other.key}".replace(".", "_"),
        f"{one.key} and {other.key}",
        "Where the best quarter gathers is a good region; if it touches an edge, widen that range.",
        _axis(one),
        _axis(other),
        tuple(series),
        extra={"values": [float(trial["value"]) for trial in ranked]},
    )
