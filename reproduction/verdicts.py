"""A claim against the figures of a study: reproduced, within noise, contradicted, or nothing to say yet.

A difference counts when both of its intervals leave out 0: the one over runs (Student's t over pairs of equal seed and
fold) and, where the study compared the two rows, the one over queries.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lookalike.evaluation.statistics.seeds import Spread, quantile, spread_of
from reproduction.figures import Kept, correlation, pearson, shown, span

REPRODUCED, NOISE, CONTRADICTED = "reproduced", "within noise", "contradicted"
NOT_RUN, NOT_HERE = "not run yet", "not testable here"
ORDER = (REPRODUCED, NOISE, CONTRADICTED, NOT_HERE, NOT_RUN)
Claim = Mapping[str, Any]


class Verdict(NamedTuple):
    """What came out, in figures, and what that means for the claim."""

    word: str
    ours: str = ""


def judge(claim: Claim, studies: Callable[[str], Kept]) -> Verdict:
    """The verdict on one claim; `studies` finds what is kept of a study."""
    if "untestable" in claim:
        return Verdict(NOT_HERE, claim["untestable"])
    if "known" in claim:
        return Verdict(claim["verdict"], claim["known"])
    return KINDS[claim["kind"]](claim, studies(claim["study"]))


def _signed(gap: Spread, rises: bool) -> str:
    """Whether a difference has the claimed sign, beyond its intervals."""
    if gap.over_seeds is None:
        return NOT_RUN
    spans = [interval for interval in (gap.over_seeds, gap.over_queries) if interval is not None]
    up, down = all(low > 0 for low, _ in spans), all(high < 0 for _, high in spans)
    if not up and not down:
        return NOISE
    return REPRODUCED if up == rises else CONTRADICTED


def _judged(claim: Claim, gap: Spread) -> str:
    """As `_signed`, or, where the claim is that no more than `level` happens in the other direction, by that limit."""
    rises = claim.get("rises", True)
    if "level" not in claim or gap.over_seeds is None:
        return _signed(gap, rises)
    ends = [end for interval in (gap.over_seeds, gap.over_queries) if interval is not None for end in interval]
    wrong = [-end if rises else end for end in ends]
    if min(wrong) >= claim["level"]:
        return CONTRADICTED
    return REPRODUCED if max(wrong) < claim["level"] else NOISE


def _pair(claim: Claim, study: Kept) -> Verdict:
    """One row above (or, with `rises` false, below) another."""
    row, against, metric = claim["row"], claim["against"], claim["metric"]
    gap, own, base = study.gap(row, against, metric), study.mean(row, metric), study.mean(against, metric)
    if gap is None or own is None or base is None:
        return Verdict(NOT_RUN)
    ours = (
        f"{shown(base, metric)} → {shown(own, metric)}, {shown(gap.mean, metric, '+')} {span(gap.over_seeds, metric)}"
    )
    unmoved = "".join(f"; {each} never got better than its start" for each in (against, row) if study.unmoved(each))
    return Verdict(_judged(claim, gap), f"{ours}, {_runs(gap.seeds)}{unmoved}")


def _trend(claim: Claim, study: Kept) -> Verdict:
    """A metric over ordered rows: the correlation with their order, run by run."""
    rows, metric = claim["rows"], claim["metric"]
    by_row = [study.values(row, metric) for row in rows]
    runs = sorted(set.intersection(*(set(values) for values in by_row)))
    if not runs:
        return Verdict(NOT_RUN)
    related = spread_of([pearson(range(len(rows)), [values[run] for values in by_row]) for run in runs])
    means = " → ".join(shown(sum(values[run] for run in runs) / len(runs), metric) for values in by_row)
    ends = "" if related.over_seeds is None else " [{:+.2f}, {:+.2f}]".format(*related.over_seeds)
    ours = f"{means}; r = {related.mean:+.2f}{ends}, {_runs(len(runs))}"
    return Verdict(_signed(related, claim.get("rises", True)), ours.replace("-", "−"))


def _correlation(claim: Claim, study: Kept) -> Verdict:
    """Two metrics over the rows of a study: Pearson's r with Fisher's interval."""
    one, other = claim["metrics"]
    rows = [row for row in study.rows if not row.startswith(claim.get("without", "\0"))
            and all(study.values(row, metric) for metric in (one, other))]  # fmt: skip
    if len(rows) < max(5, claim["rows"]):
        return Verdict(NOT_RUN)
    related, low, high = correlation(*([study.mean(row, metric) or 0.0 for row in rows] for metric in (one, other)))
    gap = Spread(related, None, (low, high), None, len(rows))
    ours = f"r = {related:+.2f} [{low:+.2f}, {high:+.2f}], {len(rows)} rows"
    return Verdict(_signed(gap, claim.get("rises", True)), ours.replace("-", "−"))


def _span(claim: Claim, study: Kept) -> Verdict:
    """How far the rows of a study are apart, against what the claim allows."""
    metric = claim["metric"]
    rows = [row for row in study.rows if row.startswith(claim.get("rows_of", "")) and not row.startswith("R-")]
    values = {row: study.values(row, metric) for row in rows}
    runs = sorted(set.intersection(*map(set, values.values()))) if values else []
    if len(values) < claim["count"] or len(runs) < 2:
        return Verdict(NOT_RUN)
    means = {row: sum(values[row][run] for run in runs) / len(runs) for row in rows}
    low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    apart, half = means[high] - means[low], _least_difference([[values[row][run] for run in runs] for row in rows])
    ours = f"{shown(means[low], metric)} ({low}) to {shown(means[high], metric)} ({high}): {shown(apart, metric)}"
    ours += f" ± {shown(half, metric)}, {_runs(len(runs))} each"
    sure = REPRODUCED if apart <= claim["at_most"] else CONTRADICTED
    return Verdict(NOISE if abs(apart - claim["at_most"]) < half else sure, ours)


def _least_difference(table: list[list[float]]) -> float:
    """How far two rows of a table (rows × runs) differ by chance: Student's 95 % on what rows and runs do not explain.

    >>> _least_difference([[1.0, 2.0], [3.0, 4.0], [2.0, 3.0]])
    0.0
    """
    rows, runs = len(table), len(table[0])
    whole = sum(map(sum, table)) / (rows * runs)
    by_row, by_run = [sum(row) / runs for row in table], [sum(column) / rows for column in zip(*table, strict=True)]
    squares = sum(
        (value - by_row[i] - by_run[j] + whole) ** 2 for i, row in enumerate(table) for j, value in enumerate(row)
    )
    freedom = (rows - 1) * (runs - 1)
    return quantile(freedom) * math.sqrt(2 * squares / freedom / runs)


def _steps(claim: Claim, study: Kept) -> Verdict:
    """Steps until the best validation, as a ratio between two rows."""
    mine, theirs = study.runs(claim["row"]), study.runs(claim["against"])
    pairs = [(mine[key]["best_step"], theirs[key]["best_step"]) for key in sorted(mine.keys() & theirs.keys())]
    ratios = [one / other - 1 for one, other in pairs if other]
    if not ratios:
        return Verdict(NOT_RUN)
    over = spread_of(ratios)
    own, base = (sum(each) / len(pairs) for each in zip(*pairs, strict=True))
    ours = f"{base:,.0f} → {own:,.0f} steps, {over.mean:+.0%}{_percent(over)}, {_runs(over.seeds)}"
    return Verdict(_signed(over, claim.get("rises", True)), ours.replace("-", "−"))


def _instances(claim: Claim, study: Kept) -> Verdict:
    """A figure on validation classes as each of CCP's instances ends, up to the weights that were kept: from the first
    to the last."""
    runs, changes = study.runs(claim["row"]), []
    for run in runs.values():
        ended = [each for each in run.get("instances", []) if 0 < each["step"] <= run["best_step"]]
        if len(ended) > 1:
            changes.append(ended[-1][claim["figure"]] / ended[0][claim["figure"]] - 1)
    if not changes and study.complete and runs:
        return Verdict(
            NOT_HERE, f"in none of {_runs(len(runs))} did two instances end before the weights that were kept"
        )
    if not changes:
        return Verdict(NOT_RUN)
    over = spread_of(changes)
    ours = f"{over.mean:+.1%}{_percent(over)} from the first to the last that ended, {_runs(over.seeds)}"
    return Verdict(_judged(claim, over), ours.replace("-", "−"))


def _search(claim: Claim, study: Kept) -> Verdict:
    """Where the best trial of a search lies."""
    trials = [trial for trial in study.content.get("trials", []) if trial.get("value") is not None]
    if not trials:
        return Verdict(NOT_RUN)
    best = max(trials, key=lambda trial: float(trial["value"]))
    inside = all(low <= best["params"][key] <= high for key, (low, high) in claim["within"].items())
    values = ", ".join(f"{key} {value:.2g}" for key, value in best["params"].items())
    ours = f"{values}: validation map@r {100 * best['value']:.2f}, best of {len(trials)} trials"
    return Verdict(REPRODUCED if inside else CONTRADICTED, ours)


KINDS: dict[str, Callable[[Claim, Kept], Verdict]] = {
    "pair": _pair, "trend": _trend, "correlation": _correlation, "span": _span, "steps": _steps,
    "instances": _instances, "search": _search,
}  # fmt: skip


def _percent(over: Spread) -> str:
    return "" if over.over_seeds is None else f" [{over.over_seeds[0]:+.0%}, {over.over_seeds[1]:+.0%}]"


def _runs(count: int) -> str:
    return f"{count} run{'s' * (count != 1)}"
