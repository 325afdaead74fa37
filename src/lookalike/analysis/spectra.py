"""The shape of the space over many runs, and how it correlates with recall [math F.7, F.8, I.7].

Roth, Milbich, Sinha, Gupta, Ommer, Cohen: Revisiting Training Strategies and Generalization Performance in Deep Metric
Learning, ICML 2020, figures 5 and 10 (recall@1 against rho, intra, inter and their ratio, over losses) and 11 (spectra
class by class). The paper measures train embeddings: runs with `evaluation.train = ["rho", …]` have those figures.

Departs from the paper: where a run lacks them, its test embeddings are measured instead, and the result says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from lookalike.analysis.figures import COLOURS, panels, plain
from lookalike.errors import check
from lookalike.evaluation.geometry import spectrum, spread
from lookalike.geometry import normalise
from lookalike.labels import encode
from lookalike.report.compare import collect
from lookalike.runs import Finished
from lookalike.runs.finished import load_test

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES = ("rho", "rho@0", "intra", "inter", "intra_inter")
MEANINGS = {
    "rho": "rho (nats, without the largest value)",
    "rho@0": "rho (nats, all values)",
    "intra": "intra (1 − cosine within classes)",
    "inter": "inter (1 − cosine between centres)",
    "intra_inter": "intra / inter (ratio)",
}
LEAST = 3  # runs, for a correlation
NAMED = 10  # runs in a legend


@dataclass(frozen=True)
class Shape:
    """One run: its recall, and the measures of its space on train or test images; spectra where vectors are stored."""

    name: str
    recall: float
    on: str
    measures: Mapping[str, float]
    values: Tensor | None = None  # singular values, as shares
    class_values: Tensor | None = None  # of the classes, averaged


def shapes(paths: Sequence[Path | str]) -> list[Shape]:
    """One per training in the folders of runs or of a study; on train images where all of them measured those."""
    named = collect(paths).named_runs()
    on_train = all("rho" in run.results.get("train", {}) for _, run in named)
    known = [shape for name, run in named if (shape := _shape(name, run, on_train)) is not None]
    check(
        bool(known),
        "none of these runs has stored vectors or measured rho on its train images: set evaluation.train "
        '(in a study: metrics = ["recall@1", "train:rho"])',
    )
    return known


def _shape(name: str, run: Finished, on_train: bool) -> Shape | None:
    result = run.results["model"]
    recall = result["recall@1"] if "recall@1" in result else float("nan")
    arrays = load_test(run.path)
    if arrays is None:
        return Shape(name, recall, "train", _measured(run)) if on_train else None
    vectors = normalise(torch.from_numpy(arrays["embeddings"]).float(), "sphere")
    (codes,), _ = encode(arrays["labels"].tolist())
    values = spectrum.singular_values(vectors)
    measures = (
        _measured(run)
        if on_train
        else {
            "rho": spectrum.of_spectrum(values, 1),
            "rho@0": spectrum.of_spectrum(values, 0),
            "intra": spread.intra(vectors, codes),
            "inter": spread.inter(vectors, codes),
            "intra_inter": spread.intra_inter(vectors, codes),
        }
    )
    by_class = spectrum.class_spectrum(vectors, codes)
    return Shape(name, recall, "train" if on_train else "test", measures, values / values.sum(), by_class)


def _measured(run: Finished) -> dict[str, float]:
    result = run.results["train"]
    return {name: result[name] for name in MEASURES if name in result}


def correlations(runs: Sequence[Shape]) -> dict[str, float]:
    """Pearson's r of recall@1 with every measure that all runs have; none with fewer than three runs."""
    if len(runs) < LEAST:
        return {}
    recall = np.array([run.recall for run in runs])
    return {name: pearson(recall, np.array([run.measures[name] for run in runs])) for name in _shared(runs)}


def _shared(runs: Sequence[Shape]) -> list[str]:
    """The measures that all runs have."""
    return [name for name in MEASURES if all(name in run.measures for run in runs)]


def pearson(one: Any, other: Any) -> float:
    """Correlation; NaN where one of the two does not vary.

    >>> pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.5])) > 0.99
    True
    """
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])


def spectrum_numbers(runs: Sequence[Shape]) -> dict[str, Any]:
    """The numbers of table and figure."""
    rows = [
        {
            "name": run.name,
            "recall@1": run.recall,
            "on": run.on,
            **run.measures,
            "spectrum": None if run.values is None else run.values.tolist(),
            "class_spectrum": None if run.class_values is None else run.class_values.tolist(),
        }
        for run in runs
    ]
    related = {name: None if np.isnan(value) else value for name, value in correlations(runs).items()}
    return {"correlation with recall@1": related, "runs": rows}


def draw_spectra(runs: Sequence[Shape]) -> "Figure":
    """Recall against every measure; then the spectra of the whole space and of the classes."""
    related, shared = correlations(runs), _shared(runs)
    with_spectra = [run for run in runs if run.values is not None]
    count = len(shared) + 2 * bool(with_spectra)
    rows, columns = (1, count) if count <= 3 else (2, (count + 1) // 2)
    caption = f"Dots are runs, measured on {runs[0].on} images: does recall@1 rise as rho falls?"
    if with_spectra:
        caption += " Lines: a flat spectrum uses many directions; a class whose values fall slowly keeps its variety."
    figure, axes = panels(rows, columns, (max(6.0, 3.0 * columns), 2.9 * rows), caption)
    places = list(axes.flat)
    for name in shared:
        axis = places.pop(0)
        axis.scatter([run.measures[name] for run in runs], [100 * run.recall for run in runs], s=14, color=COLOURS[0])
        title = f"r = {related[name]:.2f}, {len(runs)} runs" if name in related else f"{len(runs)} runs"
        axis.set(xlabel=MEANINGS[name], ylabel="recall@1 (%)", title=title)
    if with_spectra:
        _lines(places.pop(0), with_spectra, "values", "singular value (rank)", "share of the sum (log)")
        _lines(places.pop(0), with_spectra, "class_values", "singular value of a class (rank)", "mean value (log)")
    for axis in places:
        axis.set_axis_off()
    return figure


def _lines(axis: Any, runs: Sequence[Shape], which: str, xlabel: str, ylabel: str) -> None:
    for place, run in enumerate(runs):
        values = getattr(run, which).clamp(min=1e-9)
        label = plain(run.name) if place < NAMED else None
        axis.plot(range(1, len(values) + 1), values, color=COLOURS[place % len(COLOURS)], linewidth=1, label=label)
    axis.set(xlabel=xlabel, ylabel=ylabel, yscale="log")
    axis.legend(fontsize=6)
