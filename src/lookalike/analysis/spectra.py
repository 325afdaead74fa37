"""The shape of the space over many runs, and whether it goes with recall (SPEC F.7, F.8, I.7).

Roth, Milbich, Sinha, Gupta, Ommer, Cohen: Revisiting Training Strategies and Generalization Performance in Deep Metric
Learning, ICML 2020, figures 5 and 10 (recall@1 against rho, intra, inter and their ratio, over losses) and 11 (spectra
class by class). The paper measures train embeddings: runs with `evaluation.train = ["rho", …]` have those figures.

Departs from the paper: where a run lacks them, its test embeddings are measured instead, and this is said.
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
from lookalike.runs import Finished, collect
from lookalike.runs.finished import load_test

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES = ("rho", "rho@0", "intra", "inter", "intra_inter")
MEANINGS = {
    "rho": "rho (nats, without the largest value)", "rho@0": "rho (nats, all values)",
    "intra": "intra (1 − cosine within classes)", "inter": "inter (1 − cosine between centres)",
    "intra_inter": "intra / inter (ratio)",
}  # fmt: skip
LEAST = 3  # runs, for a correlation
NAMED = 10  # runs in a legend


@dataclass(frozen=True)
class Shape:
    """One run: its recall, and the measures of its space on train or test images; spectra where vectors are there."""

    name: str
    recall: float
    on: str
    measures: Mapping[str, float]
    values: Tensor | None = None  # singular values, as shares
    class_values: Tensor | None = None  # of the classes, averaged


def shapes(paths: Sequence[Path | str]) -> list[Shape]:
    """One per training in the folders of runs or of a study; on train images where all of them have that."""
    methods = collect(paths).methods
    named = [(method.name, run) for method in methods for run in method.runs]
    seen = all("rho" in run.results.get("train", {}) for _, run in named)
    names = [name if len(method.runs) == 1 else f"{name}, seed {run.seed}"
             for method in methods for name, run in ((method.name, run) for run in method.runs)]  # fmt: skip
    found = [_shape(name, run, seen) for name, (_, run) in zip(names, named, strict=True)]
    kept = [shape for shape in found if shape is not None]
    check(
        bool(kept),
        "none of these runs has kept vectors or measured rho on its train images: set evaluation.train "
        '(in a study: metrics = ["recall@1", "train:rho"])',
    )
    return kept


def _shape(name: str, run: Finished, seen: bool) -> Shape | None:
    result = run.results["model"]
    recall = result["recall@1"] if "recall@1" in result else float("nan")
    arrays = load_test(run.path)
    if arrays is None:
        if not seen:
            return None
        return Shape(name, recall, "train", _known(run))
    vectors = normalise(torch.from_numpy(arrays["embeddings"]).float(), "sphere")
    (codes,), _ = encode(arrays["labels"].tolist())
    values = spectrum.singular_values(vectors)
    measures = _known(run) if seen else {
        "rho": spectrum.of_spectrum(values, 1), "rho@0": spectrum.of_spectrum(values, 0),
        "intra": spread.intra(vectors, codes), "inter": spread.inter(vectors, codes),
        "intra_inter": spread.intra_inter(vectors, codes),
    }  # fmt: skip
    by_class = spectrum.class_spectrum(vectors, codes)
    return Shape(name, recall, "train" if seen else "test", measures, values / values.sum(), by_class)


def _known(run: Finished) -> dict[str, float]:
    found = run.results["train"]
    return {name: found[name] for name in MEASURES if name in found}


def correlations(found: Sequence[Shape]) -> dict[str, float]:
    """Pearson's r of recall@1 with every measure that all runs have; none with fewer than three runs."""
    shared = [name for name in MEASURES if all(name in shape.measures for shape in found)]
    if len(found) < LEAST:
        return {}
    recall = np.array([shape.recall for shape in found])
    columns = {name: np.array([shape.measures[name] for shape in found]) for name in shared}
    return {name: pearson(recall, column) for name, column in columns.items()}


def pearson(one: Any, other: Any) -> float:
    """Correlation; of something that does not vary, none.

    >>> pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.5])) > 0.99
    True
    """
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])


def spectrum_numbers(found: Sequence[Shape]) -> dict[str, Any]:
    """What table and figure say."""
    told = {name: None if np.isnan(value) else value for name, value in correlations(found).items()}
    runs = [
        {"name": shape.name, "recall@1": shape.recall, "on": shape.on, **shape.measures,
         "spectrum": None if shape.values is None else shape.values.tolist(),
         "class_spectrum": None if shape.class_values is None else shape.class_values.tolist()}
        for shape in found
    ]  # fmt: skip
    return {"correlation with recall@1": told, "runs": runs}


def draw_spectra(found: Sequence[Shape]) -> "Figure":
    """Recall against every measure; then the spectra of the whole space and of the classes."""
    related = correlations(found)
    shared = [name for name in MEASURES if all(name in shape.measures for shape in found)]
    drawn = [shape for shape in found if shape.values is not None]
    count = len(shared) + 2 * bool(drawn)
    rows, columns = (1, count) if count <= 3 else (2, (count + 1) // 2)
    caption = f"Dots are runs, measured on {found[0].on} images: does recall@1 rise as rho falls?"
    if drawn:
        caption += " Lines: a flat spectrum uses many directions; a class whose values fall slowly keeps its variety."
    figure, axes = panels(rows, columns, (max(6.0, 3.0 * columns), 2.9 * rows), caption)
    places = list(axes.flat)
    for name in shared:
        axis = places.pop(0)
        axis.scatter([shape.measures[name] for shape in found], [100 * shape.recall for shape in found], s=14,
                     color=COLOURS[0])  # fmt: skip
        told = f"r = {related[name]:.2f}, {len(found)} runs" if name in related else f"{len(found)} runs"
        axis.set(xlabel=MEANINGS[name], ylabel="recall@1 (%)", title=told)
    if drawn:
        _lines(places.pop(0), drawn, "values", "singular value (rank)", "share of the sum (log)")
        _lines(places.pop(0), drawn, "class_values", "singular value of a class (rank)", "mean value (log)")
    for axis in places:
        axis.set_axis_off()
    return figure


def _lines(axis: Any, drawn: Sequence[Shape], which: str, xlabel: str, ylabel: str) -> None:
    for place, shape in enumerate(drawn):
        values = getattr(shape, which).clamp(min=1e-9)
        label = plain(shape.name) if place < NAMED else None
        axis.plot(range(1, len(values) + 1), values, color=COLOURS[place % len(COLOURS)], linewidth=1, label=label)
    axis.set(xlabel=xlabel, ylabel=ylabel, yscale="log")
    axis.legend(fontsize=6)
