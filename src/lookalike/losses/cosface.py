"""Wang et al.: CosFace: Large Margin Cosine Loss for Deep Face Recognition, CVPR 2018, eq. 4 [math A22].

L = mean CE( s (cos θ_c − m · 1[c = y]) ). See also: arcface, normalised_softmax.
"""

from typing import Any

from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_at_least, check_positive
from lookalike.geometry import Geometry, check_geometry, compare
from lookalike.loss_inputs import as_classes, check_dim
from lookalike.losses.learnt import at_learning_rate, class_weights
from lookalike.losses.margin_softmax import margin_softmax
from lookalike.targets import Embeddings, Logits, Targets, Value


class CosFace(nn.Module):
    """Classifies on the sphere while asking the own class for an extra margin of cosine.

    classes: the number of classes; labels run from 0 to classes − 1.
    dim: the dimension of the embeddings.
    margin: m, taken off the cosine with the own centre.
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
        margin: float = 0.35,
        scale: float = 64.0,
        learning_rate: float = 5e-4,
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check_at_least(0, margin=margin)
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
        return margin_softmax(cosines, labels, lambda own: own - self.margin, self.scale)
