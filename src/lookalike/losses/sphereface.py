"""Liu, Wen, Yu, Li, Raj, Song: SphereFace: Deep Hypersphere Embedding for Face Recognition, CVPR 2017 [math A24g].

L = mean CE( s ‖e‖ · [cos θ_c for c ≠ y; (λ cos θ_y + ψ(θ_y)) / (1 + λ)] ), ψ(θ) = (−1)^k cos(mθ) − 2k for θ between
kπ/m and (k + 1)π/m; the weights of the classes have unit length. See also: large_margin_softmax, arcface.
"""

from typing import Any

from torch import Tensor, nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check, check_at_least, check_positive
from lookalike.geometry import SATURATION, Geometry, check_geometry, compare, normalise, norms
from lookalike.loss_inputs import as_classes, check_dim
from lookalike.losses.learnt import at_learning_rate, class_weights
from lookalike.losses.margin_softmax import margin_softmax, multiplied
from lookalike.targets import Embeddings, Logits, Targets, Value


class SphereFace(nn.Module):
    """Classifies by angle, with the angle to the own class multiplied: a sample must be m times nearer to its weight.

    classes: the number of classes; labels run from 0 to classes − 1.
    dim: the dimension of the embeddings.
    margin: m, the whole number that multiplies the angle to the own weight.
    annealing: λ, the weight of cos θ beside ψ; the paper lowers it from 1000 to 5 while training.
    scale: s, which multiplies the logits besides the length of the embedding.
    learning_rate: of the weights, as in ArcFace.
    normalise: "none" lets an embedding's length scale its logits, "sphere" leaves only s; "ball" is in between.
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        classes: int,
        dim: int,
        margin: float = 4,
        annealing: float = 0.0,
        scale: float = 1.0,
        learning_rate: float = 5e-4,
        normalise: Geometry = "none",
    ) -> None:
        super().__init__()
        check(margin >= 1 and margin == int(margin), f"margin must be a whole number of at least 1, not {margin}")
        check_at_least(0, annealing=annealing)
        check_positive(scale=scale)
        self.margin, self.annealing, self.scale, self.learning_rate = int(margin), annealing, scale, learning_rate
        self.normalise = check_geometry(normalise)
        self.weights = class_weights(classes, dim)

    def parameter_groups(self, base_lr: float) -> list[dict[str, Any]]:
        return at_learning_rate(self, base_lr)

    def logits(self, embeddings: Embeddings) -> Logits:
        check_dim(embeddings, self.weights)
        return self._scales(embeddings) * compare(embeddings, self.weights, "sphere")

    def forward(self, embeddings: Embeddings, targets: Targets) -> Value:
        labels = as_classes(targets, embeddings, self.weights)
        cosines = compare(embeddings, self.weights, "sphere")
        scales = self._scales(embeddings)
        return margin_softmax(cosines, labels, lambda own: multiplied(own, self.margin, self.annealing), scales)

    def _scales(self, embeddings: Tensor) -> Tensor:
        """s ‖e‖ of every sample."""
        return self.scale * norms(normalise(embeddings, self.normalise)).clamp(max=SATURATION)[:, None]
