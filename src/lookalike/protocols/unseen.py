"""What is measured on classes never seen in training, and what it is measured against.

Beside the trained model stand two baselines on the same images: the network before training (a pretrained backbone's
own features, where there is one), and raw pixels.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from lookalike.data import Dataset
from lookalike.evaluation import Result, compare, evaluate
from lookalike.features import embed, features, pixels
from lookalike.models import Model

OPTIMISTIC = "(optimistic: chosen on test)"


@dataclass(frozen=True)
class Judged:
    """One way to embed the test images: its embeddings and what they are worth."""

    name: str
    role: str  # model or baseline
    embeddings: Float[Tensor, "n d"]
    result: Result
    optimistic: bool = False  # chosen on the very images it is measured on

    @property
    def title(self) -> str:
        return f"{self.name} {OPTIMISTIC}" if self.optimistic else self.name

    def as_json(self) -> dict[str, Any]:
        intervals = {
            name: list(self.result.interval(name)) for name in ("recall@1", "map@r") if name in self.result.per_query
        }
        told = {"name": self.title, "role": self.role, "metrics": dict(self.result), "intervals": intervals}
        return told | ({"optimistic": True} if self.optimistic else {})


Measure = Callable[[str, str, Tensor, Dataset, Any, Iterable[str]], Judged]


def judge(
    name: str, role: str, embeddings: Tensor, dataset: Dataset, geometry: Any, metrics: Iterable[str] = ()
) -> Judged:
    """Query = gallery unless the dataset says who asks and who is searched."""
    names = np.array(dataset.label_names, dtype=object)[dataset.labels.numpy()]
    kinds = None
    if dataset.categories is not None:
        kinds = np.array([*dataset.category_names, ""], dtype=object)[dataset.categories.numpy()]
    wanted = tuple(metrics) or None
    if dataset.roles is None:
        return Judged(
            name, role, embeddings, evaluate(embeddings, names, metrics=wanted, normalise=geometry, categories=kinds)
        )
    ask, gallery = dataset.roles == 0, dataset.roles == 1
    result = evaluate(
        embeddings[ask], names[ask.numpy()], gallery=embeddings[gallery], gallery_labels=names[gallery.numpy()],
        metrics=wanted, normalise=geometry, categories=None if kinds is None else kinds[ask.numpy()],
    )  # fmt: skip
    return Judged(name, role, embeddings, result)


def baselines(
    like: Model, untrained: Model, pretrained: bool, test: Dataset, metrics: Iterable[str], measure: Measure
) -> list[Judged]:
    """The network before training, and raw pixels in the colours of `like`."""
    before = features(untrained, test) if pretrained else embed(untrained, test)
    name = f"frozen backbone, {before.shape[1]}-D" if pretrained else "untrained network"
    return [
        measure(name, "baseline", before, test, "sphere", metrics),
        measure("raw pixels", "baseline", pixels(test, like.preprocessing), test, "sphere", metrics),
    ]


def best_of_each(chosen: Judged, looks: Iterable[Mapping[str, Any]]) -> Judged:
    """Every metric's maximum over the looks that were taken at the test images in training, as some papers report."""
    seen = list(looks)
    tops = {name: max([value, *(look[name] for look in seen if name in look)]) for name, value in chosen.result.items()}
    result = Result(tops, {}, chosen.result.labels, chosen.result.facts)
    return Judged("each metric's maximum over training", "model", chosen.embeddings, result, optimistic=True)


def gains(entries: Sequence[Judged], metrics: Iterable[str] = ("recall@1", "map@r")) -> list[dict[str, Any]]:
    """The model against every baseline, query by query."""
    model = entries[0]
    found = []
    for other in (entry for entry in entries if entry.role == "baseline"):
        for part in compare({other.name: other.result, model.name: model.result}, metrics).differences:
            if part.name == model.name:
                found.append(
                    {
                        "against": other.name,
                        "metric": part.metric,
                        "mean": part.difference,
                        "interval": [part.low, part.high],
                    }
                )
    return found
