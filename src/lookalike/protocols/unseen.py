"""What a model is worth on classes never seen in training, and the baselines it is compared with.

There are two baselines on the same images: the network before training (the features of a pretrained backbone, where
there is one), and raw pixels.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from lookalike.data import Dataset
from lookalike.evaluation import Result, compare, evaluate
from lookalike.features import pixels
from lookalike.models import Preprocessing

OPTIMISTIC = "(optimistic: chosen on test)"


@dataclass(frozen=True)
class Judged:
    """One way to embed the test images, and what it is worth.

    name: in words.
    role: "model" or "baseline".
    embeddings: of the test images, n × d.
    result: what `evaluate` gives for them.
    optimistic: it was selected on the same images it is measured on.
    """

    name: str
    role: str
    embeddings: Float[Tensor, "n d"]
    result: Result
    optimistic: bool = False

    @property
    def title(self) -> str:
        return f"{self.name} {OPTIMISTIC}" if self.optimistic else self.name

    def as_json(self) -> dict[str, Any]:
        """Its row of result.json: metrics, and intervals of the two main ones."""
        intervals = {
            name: list(self.result.interval(name)) for name in ("recall@1", "map@r") if name in self.result.per_query
        }
        entry = {"name": self.title, "role": self.role, "metrics": dict(self.result), "intervals": intervals}
        return entry | ({"optimistic": True} if self.optimistic else {})


Measure = Callable[[str, str, Tensor, Dataset, Any, Iterable[str]], Judged]


def judge(
    name: str, role: str, embeddings: Tensor, dataset: Dataset, geometry: Any, metrics: Iterable[str] = ()
) -> Judged:
    """Evaluate the embeddings: leave-one-out, unless the dataset has queries and a gallery."""
    names: Any = dataset.supervision
    if dataset.sets is None:
        names = np.array(dataset.label_names, dtype=object)[dataset.labels.numpy()]
    kinds = None
    if dataset.categories is not None:
        kinds = np.array([*dataset.category_names, ""], dtype=object)[dataset.categories.numpy()]
    chosen = tuple(metrics) or None
    if dataset.roles is None:
        return Judged(
            name, role, embeddings, evaluate(embeddings, names, metrics=chosen, normalise=geometry, categories=kinds)
        )
    queries, gallery = dataset.roles == 0, dataset.roles == 1
    result = evaluate(
        embeddings[queries],
        names[queries.numpy()],
        gallery=embeddings[gallery],
        gallery_labels=names[gallery.numpy()],
        metrics=chosen,
        normalise=geometry,
        categories=None if kinds is None else kinds[queries.numpy()],
    )
    return Judged(name, role, embeddings, result)


def baselines(
    before: Float[Tensor, "n d"],
    pretrained: bool,
    colours: Preprocessing,
    test: Dataset,
    metrics: Iterable[str],
    measure: Measure,
) -> list[Judged]:
    """The vectors `before` training (features of a `pretrained` backbone, or embeddings), and raw pixels.

    `colours`: the model's preprocessing. `test`: the images. `measure`: what judges them, such as `judge`.
    """
    name = f"frozen backbone, {before.shape[1]}-D" if pretrained else "untrained network"
    return [
        measure(name, "baseline", before, test, "sphere", metrics),
        measure("raw pixels", "baseline", pixels(test, colours), test, "sphere", metrics),
    ]


def best_of_each(model: Judged, validations: Iterable[Mapping[str, Any]]) -> Judged:
    """Every metric's maximum over all evaluations on the test images during training, as some papers report.

    `model`: the final one. `validations`: the figures by name, of each time.
    """
    rounds = list(validations)
    maxima = {
        name: max([value, *(values[name] for values in rounds if name in values)])
        for name, value in model.result.items()
    }
    result = Result(maxima, {}, model.result.labels, model.result.facts)
    return Judged("each metric's maximum over training", "model", model.embeddings, result, optimistic=True)


def gains(entries: Sequence[Judged]) -> list[dict[str, Any]]:
    """The model, first of the `entries`, against every baseline among them, query by query, with intervals over
    classes: recall@1 and map@r, where both have them per query."""
    model = entries[0]
    rows: list[dict[str, Any]] = []
    for other in (entry for entry in entries if entry.role == "baseline"):
        both = model.result.per_query.keys() & other.result.per_query.keys()
        shared = [name for name in ("recall@1", "map@r") if name in both]
        rows += (
            {"against": other.name, "metric": part.metric, "mean": part.difference, "interval": [part.low, part.high]}
            for part in compare(
                {other.name: other.result, model.name: model.result}, shared, over="classes"
            ).differences
            if part.name == model.name
        )
    return rows
