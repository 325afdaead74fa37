"""Zheng, Zheng, Garrett, Yang, Xu, Shen: Dual-Path Convolutional Image-Text Embeddings with Instance Loss, TOMM 2020
[math A24j].

L = mean CE( s · w_c·z ): every instance (a photo with its captions, an object with its views) is a class of its own,
and all its views share one weight.

Departs from pytorch-metric-learning: the weights are learnt, as in the paper. There the k-th row of the batch stands
for the k-th class, which is right only for a batch of all different labels. See also: normalised_softmax.
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


class Instance(nn.Module):
    """Classifies every instance as a class of its own by raw products, so that its views meet at one weight vector.

    classes: the number of instances; labels run from 0 to classes − 1.
    dim: the dimension of the embeddings.
    scale: s, which multiplies the products; the sphere wants one, such as 64.
    learning_rate: of the weights, as in ArcFace.
    normalise: where embeddings and weights are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self, classes: int, dim: int, scale: float = 1.0, learning_rate: float = 5e-4, normalise: Geometry = "none"
    ) -> None:
        super().__init__()
        check_positive(scale=scale)
        self.scale, self.learning_rate, self.normalise = scale, learning_rate, check_geometry(normalise)
        self.weights = class_weights(classes, dim)

    def parameter_groups(self, base_lr: float) -> list[dict[str, Any]]:
        return at_learning_rate(self, base_lr)

    def logits(self, embeddings: Embeddings) -> Logits:
        check_dim(embeddings, self.weights)
        return self.scale * compare(embeddings, self.weights, self.normalise)

    def forward(self, embeddings: Embeddings, targets: Targets) -> Value:
        labels = as_classes(targets, embeddings, self.weights)
        return cross_entropy(self.logits(embeddings), labels, reduction="sum") / max(1, len(labels))
