"""The papers' figures from the kept studies, as charts: docs/pictures/reproduction/*.svg."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lookalike.evaluation.statistics.seeds import spread_of
from lookalike.files import write_text
from lookalike.report.charts import layout, svg
from lookalike.report.charts.chart import Axis, Chart, Series, around, columns
from papers.reproduction import apart
from papers.reproduction.figures import Kept, correlation
from papers.reproduction.planned import ROOT

FOLDER = ROOT / "docs" / "pictures" / "reproduction"
Find = Callable[[str], Kept]
LEFT_OUT = ("-one", "-CCP-S")  # of the steps to converge: as many rows as there is room for
WITH_RHO = {
    "cub_roth_losses": "losses",
    "cub_p_switch": "p_switch",
    "cub_mixup": "mixup",
    "cub_roth_samplers": "batches",
}
SPECTRA = ("probability 0.0", "probability 0.2", "probability 0.4")
CCP = ("C1-CCP-L", "C2-CCP-L", "MS-CCP-L", "Triplet-CCP-L")
COURSES = {  # study, metric of validation, rows
    "ccp_course": ("cub_ccp", "map@r", ("C1", "C1-CCP-L", "MS", "MS-CCP-L")),
    "top_k_course": (
        "cub_top_k",
        "recall@1",
        ("Top-k precision", "Triplet, hard", "Triplet, semihard", "Triplet, uniform"),
    ),
    "fastap_course": (
        "cub_fastap_batch_size",
        "recall@1",
        ("batch_size 256", "batch_size 128", "batch_size 64", "batch_size 32"),
    ),
}
TITLES = {
    "ccp_course": "Precision over training, with and without chance constraints (Chance Constraints, cost)",
    "top_k_course": "Precision over training (Sampling Wisely)",
    "fastap_course": "Batch size and convergence (Deep Metric Learning to Rank, figure 3)",
}


def charts(find: Find) -> list[Chart]:
    """Every picture for which there are runs."""
    drawn = [apart.precision_against_tightness(find), recall_against_rho(find), class_spectra(find)]
    drawn += [*instances(find), steps_to_converge(find)]
    drawn += [course(find, name) for name in COURSES]
    return [chart for chart in drawn if chart is not None]


def recall_against_rho(find: Find) -> Chart | None:
    """Figures 5 and 10 of Revisiting: a dot for each run, the correlation over rows."""
    parts: list[Series] = []
    means: list[tuple[float, float]] = []
    for colour, (name, label) in enumerate(WITH_RHO.items()):
        study = find(name)
        rows = [_pairs_of(study, row) for row in study.rows]
        means += [(sum(x for x, _ in own) / len(own), sum(y for _, y in own) / len(own)) for own in rows if own]
        x, y = columns(dot for own in rows for dot in own)
        parts += [Series(label, x, y, "dots", colour)] if x else []
    if len(means) < 5:
        return None
    related, low, high = correlation(*columns(means))
    span = f"r = {related:+.2f}, 95% interval [{low:+.2f}, {high:+.2f}]".replace("-", "−")
    caption = (
        f"Each dot is a run. Over the {len(means)} rows (means of their runs), {span}; the paper's is negative. Some "
        "rows are in more than one study, so the interval is a little too narrow."
    )
    rhos, recalls = (tuple(value for part in parts for value in getattr(part, axis)) for axis in ("x", "y"))
    return Chart(
        "recall_against_rho",
        "Recall against spectral decay (Revisiting, figures 5 and 10)",
        caption,
        Axis("rho of the train embeddings", *around(rhos)),
        Axis("R@1 (%)", *around(recalls), percent=True),
        tuple(parts),
    )


def _pairs_of(study: Kept, row: str) -> list[tuple[float, float]]:
    rhos, recalls = study.values(row, "train:rho"), study.values(row, "recall@1")
    return [(rhos[run], recalls[run]) for run in sorted(rhos.keys() & recalls.keys())]


def class_spectra(find: Find) -> Chart | None:
    """Figure 11 of Revisiting: the singular values of single train classes, as shares of their sum."""
    study, parts = find("cub_p_switch"), []
    for colour, row in enumerate(SPECTRA):
        spectra = [run["class_spectrum"] for run in study.runs(row).values() if "class_spectrum" in run]
        if spectra:
            shares = [[value / sum(each[1:]) for value in each[1:]] for each in spectra]
            mean = tuple(sum(values) / len(values) for values in zip(*shares, strict=False))
            places = tuple(place + 1 for place in _places(mean))
            parts.append(Series(row.replace("probability", "p_switch"), places, mean, "line", colour))
    if not parts:
        return None
    highest, lowest = max(part.y[0] for part in parts), min(part.y[-1] for part in parts)
    caption = (
        "Mean singular values of single train classes without the largest, as shares of their sum: the flatter, the "
        "lower rho_class."
    )
    return Chart(
        "class_spectra",
        "Class spectra with p_switch (Revisiting, figure 11)",
        caption,
        Axis("place of the singular value", 2, max(part.x[-1] for part in parts)),
        Axis("share of the sum", lowest * 0.9, highest * 1.1, log=True),
        tuple(parts),
    )


def _places(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(place) for place in range(1, len(values) + 1))


def instances(find: Find) -> Iterator[Chart | None]:
    """Figure 2 of CCP: covering radius and class distance of validation classes over the instances."""
    about = {
        "covering_radius": ("Covering radius of validation classes", "it should fall"),
        "between_classes": ("Distance between validation classes", "it should not fall"),
    }
    for figure, (title, expected) in about.items():
        parts = []
        for colour, row in enumerate(CCP):
            courses = [_relative(run, f"unseen_{figure}") for run in find("cub_ccp").runs(row).values()]
            mean = _mean_while_half(courses)
            if len(mean) > 1:
                parts.append(Series(row, _places(mean), tuple(mean), "line", colour))
        if not parts:
            yield None
            continue
        caption = (
            f"As each instance ends, in percent of the first: mean over runs, as long as half of them go on. By the "
            f"paper, {expected}. The verdicts above count instances up to the weights that were kept, the picture all."
        )
        yield Chart(
            f"ccp_{figure}",
            f"{title} over the instances of CCP (Chance Constraints, figure 2)",
            caption,
            Axis("instances that have ended", 1, max(len(part.x) for part in parts)),
            Axis("of the first (%)", *around([value for part in parts for value in part.y], 0.1), percent=True),
            tuple(parts),
        )


def _relative(run: Mapping[str, Any], figure: str) -> list[float]:
    values = [each[figure] for each in run.get("instances", []) if figure in each and each["step"] > 0]
    return [value / values[0] for value in values]


def _mean_while_half(courses: Sequence[Sequence[float]]) -> list[float]:
    """The mean at each place, as far as half of the courses reach.

    >>> _mean_while_half([[1, 2, 3], [3, 4], [5]])
    [3.0, 3.0]
    """
    means = []
    for place in range(max(map(len, courses), default=0)):
        values = [course[place] for course in courses if len(course) > place]
        if 2 * len(values) >= len(courses):
            means.append(sum(values) / len(values))
    return means


def steps_to_converge(find: Find) -> Chart | None:
    """Steps until the best validation, row by row, with Student's interval over runs."""
    study = find("cub_ccp")
    rows = [row for row in study.rows if not row.endswith(LEFT_OUT) and len(study.runs(row)) > 1]
    if not rows:
        return None
    over = [spread_of([run["best_step"] for run in study.runs(row).values()]) for row in rows]
    ends = [each.over_seeds or (each.mean, each.mean) for each in over]
    lows, highs = tuple(max(0.0, low) for low, _ in ends), tuple(high for _, high in ends)
    means, places = tuple(each.mean for each in over), tuple(float(place) for place in range(len(rows)))
    return Chart(
        "ccp_steps",
        "Steps to converge (Chance Constraints, cost)",
        "Steps until the best validation, mean and 95% interval over runs.",
        Axis("steps", 0, 1.05 * max(highs)),
        Axis("", -0.5, len(rows) - 0.5, names=tuple(rows)),
        (Series("", means, places, "intervals", 0, lows, highs),),
    )


def course(find: Find, name: str) -> Chart | None:
    """A metric on validation classes over the steps that all runs of a row reached."""
    file, metric, rows = COURSES[name]
    study, parts = find(file), []
    for colour, row in enumerate(rows):
        runs = [{point["step"]: point[metric] for point in run["course"]} for run in study.runs(row).values()]
        steps = sorted(set.intersection(*(set(run) for run in runs))) if runs else []
        points = [(float(step), sum(run[step] for run in runs) / len(runs)) for step in steps if step]
        if len(points) > 1:
            parts.append(Series(row, *columns(points), "line", colour))
    if not parts:
        return None
    places, values = (tuple(value for part in parts for value in getattr(part, axis)) for axis in ("x", "y"))
    return Chart(
        name,
        TITLES[name],
        f"{metric} on validation classes, mean over runs.",
        Axis("steps", min(places), max(places), log=True),
        Axis(f"{metric} (%)", *around(values), percent=True),
        tuple(parts),
    )


def write(find: Find, folder: Path = FOLDER) -> None:
    """Every picture as a file; what is no longer drawn goes."""
    drawn = {f"{chart.name}.svg": svg.standalone(layout.drawing(chart)) for chart in charts(find)}
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        if old.name not in drawn:
            old.unlink()
    for name, text in drawn.items():
        write_text(folder / name, text)
