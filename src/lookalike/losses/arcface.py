"""Deng, Guo, Xue, Zafeiriou: ArcFace: Additive Angular Margin Loss, CVPR 2019; Revisiting, eq. 6 [math A6].

L = mean CE( s · [cos θ_c for c ≠ y; cos(θ_y + γ)] ), θ the angle between embedding and class centre.

Departs from the paper: the printed equation lacks the arccos and sums the denominator over samples instead of classes
[math ERR-7]; cosines are clamped to [−1 + 1e-7, 1 − 1e-7] with both signs, and where θ + γ > π the logit continues as
cos θ − γ sin γ, so that it stays monotone. See also: sub_center_arcface, cosface,
normalised_softmax.
"""

import math
from typing import Any

from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check, check_positive
from lookalike.geometry import Geometry, check_geometry, compare
from lookalike.loss_inputs import as_classes, check_dim
from lookalike.losses.learnt import at_learning_rate, class_weights
from lookalike.losses.margin_softmax import margin_softmax, turned
from lookalike.targets import Embeddings, Logits, Targets, Value


class ArcFace(nn.Module):
    """Classifies on the sphere while holding every sample an extra angle away from its class centre.

    classes: the number of classes; labels run from 0 to classes − 1.
    dim: the dimension of the embeddings.
    margin: γ, the extra angle to the own centre, in radians.
    scale: s, which multiplies the cosines before the softmax.
    learning_rate: of the centres.
    normalise: where embeddings and centres are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        classes: int,
        dim: int,
        margin: float = 0.5,
        scale: float = 16.0,
        learning_rate: float = 5e-4,
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check(0 <= margin < math.pi, f"margin is an angle in radians between 0 and π, not {margin}")
        check_positive(scale=scale)
        self.margin, self.scale, self.learning_rate = margin, scale, learning_rate
        self.normalise = check_geometry(normalise)
        self.centres = class_weights(classes, dim)

    def parameter_groups(self, base_lr: float) -> list[dict[str, Any]]:
        return at_learning_rate(self, base_lr)

    def logits(self, embeddings: Embeddings) -> Logits:
        check_dim(embeddings, self.centres)
        return self.scale * compare(embeddings, self.centres, self.normalise)

    def forward(self, embeddings: Embeddings, targets: Targets) -> Value:
        labels = as_classes(targets, embeddings, self.centres)
        cosines = compare(embeddings, self.centres, self.normalise)
        return margin_softmax(cosines, labels, lambda own: turned(own, self.margin), self.scale)
