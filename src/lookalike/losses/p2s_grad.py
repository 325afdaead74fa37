"""Zhang, Zhao, Yan, Zhang, Li, Wang: P2SGrad: Refined Gradients for Optimizing Deep Face Models, CVPR 2019
[math A24i].

∂L/∂cos θ_c = cos θ_c − 1[c = y]: the distance of the cosine from where it belongs stands in for that of a probability.

Departs from the paper: it gives only this gradient; L = mean ½ Σ_c (cos θ_c − 1[c = y])² is the function that has it.
See also: normalised_softmax.
"""

from typing import Any

from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.geometry import SATURATION, Geometry, check_geometry, compare
from lookalike.loss_inputs import as_classes, check_dim
from lookalike.losses.learnt import at_learning_rate, class_weights
from lookalike.targets import Embeddings, Logits, Targets, Value


class P2SGrad(nn.Module):
    """Moves a sample towards its class by how far its cosine falls short of 1, away from others by theirs; no scale.

    classes: the number of classes; labels run from 0 to classes − 1.
    dim: the dimension of the embeddings.
    learning_rate: of the weights, as in ArcFace.
    normalise: where embeddings and weights are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(self, classes: int, dim: int, learning_rate: float = 5e-4, normalise: Geometry = "sphere") -> None:
        super().__init__()
        self.learning_rate, self.normalise = learning_rate, check_geometry(normalise)
        self.weights = class_weights(classes, dim)

    def parameter_groups(self, base_lr: float) -> list[dict[str, Any]]:
        return at_learning_rate(self, base_lr)

    def logits(self, embeddings: Embeddings) -> Logits:
        check_dim(embeddings, self.weights)
        return compare(embeddings, self.weights, self.normalise)

    def forward(self, embeddings: Embeddings, targets: Targets) -> Value:
        labels = as_classes(targets, embeddings, self.weights)
        cosines = self.logits(embeddings)
        if self.normalise == "none":  # squares of raw products saturate as the products do
            cosines = cosines.clamp(-(SATURATION**0.5), SATURATION**0.5)
        own = cosines.gather(1, labels[:, None])
        # ½ Σ (cos θ_c − 1[c = y])², multiplied out
        return (0.5 * cosines.square().sum() - own.sum() + 0.5 * len(labels)) / max(1, len(labels))
