"""A claim against the figures of a study: reproduced, within noise, contradicted, or nothing to say yet.

A difference counts when both of its intervals leave out 0: the one over runs (Student's t over pairs of equal seed and
fold) and, where the metric has a value for every query, the one over queries. It counts for nothing where the row that
is to be surpassed ended no better than an untrained head: then the setting did not suit that row.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lookalike.evaluation.statistics.seeds import Spread, quantile, spread_of
from papers.reproduction.figures import Kept, correlation, fisher, pearson, shown, span
from papers.reproduction.untrained import starts

REPRODUCED, NOISE, CONTRADICTED = "reproduced", "within noise", "contradicted"
NOT_RUN, NOT_HERE = "not run yet", "not testable here"
ORDER = (REPRODUCED, NOISE, CONTRADICTED, NOT_HERE, NOT_RUN)
NEAREST = ("recall@1", "precision@1")  # the same figure by its two names
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
    verdict = KINDS[claim["kind"]](claim, studies(claim["study"]))
    doubt = claim.get("doubt") or _untaught(claim, studies)
    if doubt and verdict.word not in (NOT_RUN, NOT_HERE):
        return Verdict(NOT_HERE, f"{verdict.ours}; {doubt}")
    return verdict


def _untaught(claim: Claim, studies: Callable[[str], Kept]) -> str:
    """Which row that the claim measures others by ended no better than an untrained head, in the metric of the claim or
    in its nearest neighbour; empty where none did."""
    study, known = studies(claim["study"]), starts(claim["study"])
    for row in _baselines(claim, study):
        if row not in known:
            continue
        start = studies(known[row].study)
        for metric in dict.fromkeys((*NEAREST, claim.get("metric", NEAREST[0]))):
            own, begun = study.values(row, metric), start.values(known[row].row, metric)
            seeds = {seed for seed, _ in own}
            before = [value for (seed, _), value in begun.items() if seed in seeds]
            if own and before and _mean(own.values()) <= _mean(before):
                return f"{row} ended no better than an untrained head ({metric} {shown(_mean(before), metric)})"
    return ""


def _baselines(claim: Claim, study: Kept) -> list[str]:
    if claim["kind"] == "pair":
        return [claim["against"]]
    return _spanned(claim, study) if claim["kind"] == "span" else []


def _mean(values: Iterable[float]) -> float:
    every = list(values)
    return sum(every) / len(every)


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
    spans = [span(each, metric) for each in (gap.over_seeds, gap.over_queries) if each is not None]
    higher = " ".join([shown(gap.mean, metric, "+"), *spans])
    ours = f"{shown(base, metric)} → {shown(own, metric)}, {higher}, {_runs(gap.seeds)}"
    unmoved = [each for each in (against, row) if study.unmoved(each)]
    if unmoved and gap.seeds > 1:
        return Verdict(NOT_HERE, f"{ours}; {unmoved[0]} never got better than its start")
    renewed = study.renewed(row)
    if renewed is not None:
        ours += f"; proxies renewed in {renewed} of {_runs(len(study.runs(row)))}"
        if claim.get("renewal") and not renewed and study.complete:
            return Verdict(NOT_HERE, ours)
    return Verdict(_judged(claim, gap), ours)


def _trend(claim: Claim, study: Kept) -> Verdict:
    """A metric over ordered rows: the correlation with their order, run by run, by Fisher's transformation. With
    `against`, how far each row is above its own of these."""
    rows, metric = claim["rows"], claim["metric"]
    by_row = [study.values(row, metric) for row in rows]
    for place, row in enumerate(claim.get("against", ())):
        base = study.values(row, metric)
        by_row[place] = {run: value - base[run] for run, value in by_row[place].items() if run in base}
    runs = sorted(set.intersection(*(set(values) for values in by_row)))
    if not runs:
        return Verdict(NOT_RUN)
    related = spread_of([fisher(pearson(range(len(rows)), [values[run] for values in by_row])) for run in runs])
    sign = "+" if "against" in claim else ""
    means = " → ".join(shown(sum(values[run] for run in runs) / len(runs), metric, sign) for values in by_row)
    ends = "" if related.over_seeds is None else " [{:+.2f}, {:+.2f}]".format(*map(math.tanh, related.over_seeds))
    ours = f"{means}; r = {math.tanh(related.mean):+.2f}{ends}, {_runs(len(runs))}"
    return Verdict(_signed(related, claim.get("rises", True)), ours.replace("-", "−"))


def _correlation(claim: Claim, study: Kept) -> Verdict:
    """Two metrics over the rows of a study: Pearson's r with Fisher's interval."""
    one, other = claim["metrics"]
    rows = [
        row
        for row in study.rows
        if not row.startswith(tuple(claim.get("without", ())))
        and all(study.values(row, metric) for metric in (one, other))
    ]
    if len(rows) < max(5, claim["rows"]):
        return Verdict(NOT_RUN)
    related, low, high = correlation(*([study.mean(row, metric) or 0.0 for row in rows] for metric in (one, other)))
    gap = Spread(related, None, (low, high), None, len(rows))
    ours = f"r = {related:+.2f} [{low:+.2f}, {high:+.2f}], {len(rows)} rows"
    return Verdict(_signed(gap, claim.get("rises", True)), ours.replace("-", "−"))


def _span(claim: Claim, study: Kept) -> Verdict:
    """How far the rows of a study are apart, against what the claim allows."""
    metric, rows = claim["metric"], _spanned(claim, study)
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


def _spanned(claim: Claim, study: Kept) -> list[str]:
    return [row for row in study.rows if row.startswith(claim.get("rows_of", "")) and not row.startswith("R-")]


def _least_difference(table: list[list[float]]) -> float:
    """How far two rows of a table (rows × runs) differ by chance: Student's 95% on what rows and runs do not explain.

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
    """Steps until the best validation, as a ratio between two rows: geometric means."""
    mine, theirs = study.runs(claim["row"]), study.runs(claim["against"])
    both = [(mine[key]["best_step"], theirs[key]["best_step"]) for key in sorted(mine.keys() & theirs.keys())]
    logs = [(math.log(one), math.log(other)) for one, other in both if one and other]
    if not logs:
        return Verdict(NOT_RUN)
    over = spread_of([one - other for one, other in logs])
    own, base = (math.exp(sum(each) / len(logs)) for each in zip(*logs, strict=True))
    mean, *ends = (math.expm1(value) for value in (over.mean, *(over.over_seeds or ())))
    ours = f"{base:,.0f} → {own:,.0f} steps, {mean:+.0%}"
    ours += (" [{:+.0%}, {:+.0%}]".format(*ends) if ends else "") + f", {_runs(over.seeds)}"
    return Verdict(_signed(over, claim.get("rises", True)), ours.replace("-", "−"))


def _instances(claim: Claim, study: Kept) -> Verdict:
    """A figure on validation classes as each of CCP's instances ends, up to the weights that were kept: from the first
    to the last. With `relative_to`, divided by another one."""
    runs, changes = study.runs(claim["row"]), []

    def figure(instance: Mapping[str, float]) -> float:
        return instance[claim["figure"]] / (instance[claim["relative_to"]] if "relative_to" in claim else 1)

    for run in runs.values():
        ended = [each for each in run.get("instances", []) if 0 < each["step"] <= run["best_step"]]
        if len(ended) > 1:
            changes.append(figure(ended[-1]) / figure(ended[0]) - 1)
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
    """The best trial within the claimed limits against the best one outside them."""
    trials = [trial for trial in study.content.get("trials", []) if trial.get("value") is not None]
    limits = claim["within"].items()
    inside = [trial for trial in trials if all(low <= trial["params"][key] <= high for key, (low, high) in limits)]
    outside = [trial for trial in trials if trial not in inside]
    if not inside or not outside:
        return Verdict(NOT_RUN)
    (within, words), (beyond, others) = _best(inside), _best(outside)
    sure = REPRODUCED if within > beyond else CONTRADICTED
    ours = f"validation map@r {words}, the best of {len(inside)} inside; {others}, the best of {len(outside)} outside"
    return Verdict(NOISE if abs(within - beyond) < claim["apart"] else sure, ours)


def _best(trials: Sequence[Any]) -> tuple[float, str]:
    best = max(trials, key=lambda trial: float(trial["value"]))
    at = ", ".join(f"{key.removeprefix('ccp.')} {value:.2g}" for key, value in best["params"].items())
    return best["value"], f"{shown(best['value'], 'map@r')} ({at})"


KINDS: dict[str, Callable[[Claim, Kept], Verdict]] = {
    "pair": _pair,
    "trend": _trend,
    "correlation": _correlation,
    "span": _span,
    "steps": _steps,
    "instances": _instances,
    "search": _search,
}


def _percent(over: Spread) -> str:
    return "" if over.over_seeds is None else f" [{over.over_seeds[0]:+.0%}, {over.over_seeds[1]:+.0%}]"


def _runs(count: int) -> str:
    return f"{count} run{'s' * (count != 1)}"
