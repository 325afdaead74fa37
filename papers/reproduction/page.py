"""docs/reproduction.md, drawn from claims.toml and the kept results."""

import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from lookalike.files import write_text
from lookalike.sweeps import read
from papers.reproduction import apart, pictures
from papers.reproduction.figures import RESULTS, Kept, shown
from papers.reproduction.planned import ROOT, SEARCH, STUDIES
from papers.reproduction.published import SAMPLERS, published
from papers.reproduction.verdicts import NOT_RUN, ORDER, Verdict, judge

CLAIMS = Path(__file__).with_name("claims.toml")
TEXT = Path(__file__).with_name("text.md")
PAGE = ROOT / "docs" / "reproduction.md"
MARK, STATE, RATES, COUNT = "<!-- tables -->", "<!-- state -->", "<!-- rates -->", "<!-- count -->"
KINDS = {
    "cub": "heads on CUB",
    "cars": "heads on Cars196",
    "finetuned": "fine-tuned networks",
    "omniglot": "networks on Omniglot",
}
COURSES = {"cub_ccp": "map@r", "cub_fastap_batch_size": "recall@1", "cub_top_k": "recall@1"}
STEPS = (0, 25, 50, 100, 200, 400, 800, 1600)  # what study.json keeps of every run


def claims() -> list[dict[str, Any]]:
    """All claims, those with several rows or opponents taken apart; a pair brings its own figure of the paper."""
    content = tomllib.loads(CLAIMS.read_text(encoding="utf-8"))
    every: list[dict[str, Any]] = []
    for claim in content["claim"]:
        many = claim.pop("pairs", None)
        every += [claim] if many is None else [{**claim, **_named(claim, each)} for each in many]
    return every


def _named(claim: dict[str, Any], pair: dict[str, Any]) -> dict[str, Any]:
    return {"says": claim["says"].format(**pair), **pair}


def draw(results: Path = RESULTS) -> str:
    """The whole page."""
    find: pictures.Find = cache(lambda name: Kept.read(name, results))
    judged = [(claim, judge(claim, find)) for claim in claims()]
    count = Counter(verdict.word for _, verdict in judged)
    counted = f"{len(judged)} claims: " + ", ".join(f"{count[word]} {word}" for word in ORDER if count[word]) + "."
    lines: list[str] = []
    for paper in dict.fromkeys(claim["paper"] for claim, _ in judged):
        rows = [_line(claim, verdict, find) for claim, verdict in judged if claim["paper"] == paper]
        lines += [
            f"## {paper}",
            "",
            "| claim | where | the paper | here | verdict | study |",
            "|---|---|---|---|---|---|",
        ]
        lines += [*rows, ""]
    lines += ["## The tables beside ours", *_tables(find), *_trials(find)]
    lines += [*_courses(find), *_pictures(find), "", "## What was run", "", *_runs(find)]
    parts = {STATE: _state(find, count), COUNT: counted, RATES: "\n".join(apart.rates(find)), MARK: "\n".join(lines)}
    text = TEXT.read_text(encoding="utf-8")
    for mark, part in parts.items():
        text = text.replace(mark, part)
    for row, name in SAMPLERS.items():
        text = text.replace(row, name)
    return text


@cache
def _planned_cells(name: str) -> int:
    return len(read(next(planned.file for planned in STUDIES if planned.name == name)).cells)


def _state(find: Any, count: Counter[str]) -> str:
    """How far the runs are, and what is missing."""
    done = {planned.name: find(planned.name).content.get("done", 0) for planned in STUDIES}
    left = {name: _planned_cells(name) - number for name, number in done.items()}
    kinds = [
        f"{sum(done[each.name] for each in STUDIES if each.cells == kind)} of "
        f"{sum(_planned_cells(each.name) for each in STUDIES if each.cells == kind)} {words}"
        for kind, words in KINDS.items()
    ]
    whole = sum(done.values())
    text = f"**Progress: {whole} of {whole + sum(left.values())} runs are done** ({', '.join(kinds)})."
    begun = [f"`{name}` ({number} of {_planned_cells(name)})" for name, number in done.items() if number and left[name]]
    missing = [f"`{name}`" for name, number in done.items() if not number]
    missing += [] if find(SEARCH).content.get("trials") else [f"`{SEARCH}`"]
    if begun:
        text += f" Under way: {', '.join(begun)}."
    if missing:
        text += f" Not begun: {', '.join(missing)}."
    if not begun and not missing:
        text += " Nothing is missing."
    if count[NOT_RUN]:
        text += f" Claims without a verdict: {count[NOT_RUN]}; verdicts that say *so far* rest on unfinished studies."
    return text


def _line(claim: dict[str, Any], verdict: Verdict, find: Any) -> str:
    study = f"`{claim['study']}`" if "study" in claim else claim.get("command", "")
    word = verdict.word if verdict.word == NOT_RUN else f"**{verdict.word}**"
    if word != NOT_RUN and "study" in claim and not find(claim["study"]).complete:
        word += " so far"
    says = claim["says"] + (" †" if claim.get("later") else "")
    cells = [says, claim.get("where", ""), claim.get("theirs", ""), verdict.ours]
    return "| " + " | ".join([*cells, word, study]) + " |"


def _tables(find: Any) -> Iterator[str]:
    """Every study with all its rows; published figures of the same row in brackets."""
    for name in (planned.name for planned in STUDIES):
        study = find(name)
        if not study.rows:
            continue
        metrics = study.content["metrics"]
        yield from ("", f"### {study.content['title']}", "")
        yield f"| row | runs | {' | '.join(metrics)} | validation map@r | best step |"
        yield "|---" * (len(metrics) + 4) + "|"
        for row in study.rows:
            figures = published(name, row)
            cells = [_cell(study, row, metric, figures.get(metric)) for metric in metrics]
            runs = study.runs(row).values()
            chosen = 100 * _mean([run.get("validation", {}).get("map@r", float("nan")) for run in runs])
            best = _mean([run.get("best_step", float("nan")) for run in runs])
            yield f"| {row} | {len(runs)} | {' | '.join(cells)} | {chosen:.2f} | {best:,.0f} |"


def _trials(find: Any) -> Iterator[str]:
    """Every trial of the search, the best one first; those that were given up, last."""
    trials = find(SEARCH).content.get("trials", [])
    if not trials:
        return
    yield from ("", "### λ and proxies of C2-CCP by Bayesian search, on validation classes of two folds", "")
    yield from ("| trial | λ | proxies | validation map@r |", "|---|---|---|---|")
    for trial in sorted(trials, key=lambda trial: -1 if trial["value"] is None else trial["value"], reverse=True):
        value = "given up" if trial["value"] is None else shown(trial["value"], "map@r")
        pull, proxies = trial["params"]["ccp.pull"], trial["params"]["ccp.proxies"]
        yield f"| {trial['number'] + 1} | {pull:.1e} | {proxies} | {value} |"


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _courses(find: Any) -> Iterator[str]:
    """Validation over training, where a figure of a paper shows it."""
    for name, metric in COURSES.items():
        study = find(name)
        if not study.rows:
            continue
        yield from ("", f"### {study.content['title']}: {metric} on validation classes over training", "")
        yield f"| row | {' | '.join(f'step {step}' for step in STEPS)} |"
        yield "|---" * (len(STEPS) + 1) + "|"
        for row in study.rows:
            courses = [{point["step"]: point[metric] for point in run["course"]} for run in study.runs(row).values()]
            cells = [[course[step] for course in courses if step in course] for step in STEPS]
            means = [shown(sum(cell) / len(cell), metric) if len(cell) == len(courses) else "" for cell in cells]
            yield f"| {row} | {' | '.join(means)} |"


def _pictures(find: pictures.Find) -> Iterator[str]:
    drawn = pictures.charts(find)
    if drawn:
        yield from ("", "## The figures")
    for chart in drawn:
        yield from ("", f"### {chart.title}", "", f"![{chart.title}](pictures/reproduction/{chart.name}.svg)", "")
        yield chart.caption


def _cell(study: Kept, row: str, metric: str, published: float | None) -> str:
    values = list(study.values(row, metric).values())
    if not values:
        return ""
    mean = sum(values) / len(values)
    spread = (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5 if len(values) > 1 else None
    text = shown(mean, metric) + (f" ± {shown(spread, metric)}" if spread is not None else "")
    return text + (f" (paper: {100 * published:.2f})" if published is not None else "")


def _runs(find: Any) -> Iterator[str]:
    """How far every study is, and how long it took."""
    yield "| study | runs | hours, elapsed |"
    yield "|---|---|---|"
    done = 0
    for name in (planned.name for planned in STUDIES):
        content = find(name).content
        rows = content["rows"]
        seconds = sum(sum(row["seconds"]) for row in rows)
        done += content.get("done", 0)
        left = f"{content['done']} of {content['cells']}" if rows else NOT_RUN
        yield f"| `{name}` | {left} | {seconds / 3600:.1f} |"
    yield f"| all | {done} | |"


def write() -> None:
    pictures.write(cache(Kept.read))
    write_text(PAGE, draw())
