"""Zhai, Wu: Classification is a Strong Baseline for Deep Metric Learning, BMVC 2019; Revisiting, eq. 19 [math A13d].

L = mean CE( e · ψ_c / T ).

Departs from the paper: an ordinary cross entropy, where eq. 19 leaves the own class out of the denominator
[math ERR-15]. See also: proxy_nca_pp, cosface.
"""

from typing import Any

from torch import nn
from torch.nn.functional import cross_entropy

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_positive
from lookalike.geometry import Geometry, check_geometry, compare
from lookalike.loss_inputs import as_classes, check_dim
from lookalike.losses.learnt import at_learning_rate, class_weights
from lookalike.targets import Embeddings, Logits, Targets, Value

PRESETS = {"sop": {"learning_rate": 2e-3}}


class NormalisedSoftmax(nn.Module):
    """Classifies on the sphere by the angle to one weight vector per class.

    classes: the number of classes; labels run from 0 to classes − 1.
    dim: the dimension of the embeddings.
    temperature: T, which divides the similarities before the softmax.
    learning_rate: of the weights.
    normalise: where embeddings and weights are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        classes: int,
        dim: int,
        temperature: float = 0.05,
        learning_rate: float = 1e-5,
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check_positive(temperature=temperature)
        self.temperature, self.learning_rate = temperature, learning_rate
        self.normalise = check_geometry(normalise)
        self.weights = class_weights(classes, dim)

    def parameter_groups(self, base_lr: float) -> list[dict[str, Any]]:
        return at_learning_rate(self, base_lr)

    def logits(self, embeddings: Embeddings) -> Logits:
        check_dim(embeddings, self.weights)
        return compare(embeddings, self.weights, self.normalise) / self.temperature

    def forward(self, embeddings: Embeddings, targets: Targets) -> Value:
        labels = as_classes(targets, embeddings, self.weights)
        return cross_entropy(self.logits(embeddings), labels, reduction="sum") / max(1, len(labels))
