"""Deng, Guo, Liu, Gong, Zafeiriou: Sub-center ArcFace: Boosting Face Recognition by Large-Scale Noisy Web Faces, ECCV
2020 [math A24f].

L = mean CE( s · [cos θ_c for c ≠ y; cos(θ_y + γ)] ), cos θ_c = max over the K centres of class c. Clamps and the branch
beyond π are those of arcface. See also: arcface, soft_triple (a soft maximum).
"""

import math
from typing import Any

from torch import Tensor, nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check, check_at_least, check_positive
from lookalike.geometry import Geometry, check_geometry, compare
from lookalike.loss_inputs import as_classes, check_dim
from lookalike.losses.learnt import at_learning_rate, class_weights
from lookalike.losses.margin_softmax import margin_softmax, turned
from lookalike.targets import Embeddings, Logits, Targets, Value


class SubCenterArcFace(nn.Module):
    """ArcFace with several centres per class, of which the nearest counts: the others catch noisy samples.

    classes: the number of classes; labels run from 0 to classes − 1.
    dim: the dimension of the embeddings.
    centres: K, the number of centres per class.
    margin: γ, the extra angle to the own class, in radians.
    scale: s, which multiplies the cosines before the softmax.
    learning_rate: of the centres, as in ArcFace.
    normalise: where embeddings and centres are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        classes: int,
        dim: int,
        centres: int = 3,
        margin: float = 0.5,
        scale: float = 64.0,
        learning_rate: float = 5e-4,
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check_at_least(1, centres=centres)
        check(0 <= margin < math.pi, f"margin is an angle in radians between 0 and π, not {margin}")
        check_positive(scale=scale)
        self.margin, self.scale, self.learning_rate = margin, scale, learning_rate
        self.normalise = check_geometry(normalise)
        self.centres = class_weights(classes, dim, each=centres)
        self.classes, self.per_class = classes, centres

    def parameter_groups(self, base_lr: float) -> list[dict[str, Any]]:
        return at_learning_rate(self, base_lr)

    def logits(self, embeddings: Embeddings) -> Logits:
        check_dim(embeddings, self.centres)
        return self.scale * self._cosines(embeddings)

    def forward(self, embeddings: Embeddings, targets: Targets) -> Value:
        labels = as_classes(targets, embeddings, self.centres.view(self.classes, self.per_class, -1))
        cosines = self._cosines(embeddings)
        return margin_softmax(cosines, labels, lambda own: turned(own, self.margin), self.scale)

    def _cosines(self, embeddings: Tensor) -> Tensor:
        """Those with the nearest centre of every class."""
        centres = self.centres.view(self.classes, self.per_class, -1)
        # the k-th centres of all classes side by side: the maximum over k then runs along whole rows
        by_centre = compare(embeddings, centres.transpose(0, 1).flatten(0, 1), self.normalise)
        return by_centre.view(len(embeddings), self.per_class, self.classes).amax(1)
