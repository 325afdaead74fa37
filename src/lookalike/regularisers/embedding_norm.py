"""Sohn: Improved Deep Metric Learning with Multi-class N-pair Loss Objective, NeurIPS 2016, sec. 3.2.2: weight decay
of embeddings.

ν · mean ‖z‖; squared as printed in Revisiting Training Strategies, not squared in its released code [math ERR-3].
"""

from jaxtyping import Float
from torch import Tensor, nn

from lookalike.geometry import mean_norm
from lookalike.loss_inputs import check_embeddings


class EmbeddingNorm(nn.Module):
    """Keeps raw embeddings short, so that dot products cannot grow by length alone.

    weight: ν, the factor of the mean length.
    squared: whether lengths are squared before they are averaged.
    """

    def __init__(
        self,
        weight: float = 0.005,  # ν
        squared: bool = False,
    ) -> None:
        super().__init__()
        self.weight, self.squared = weight, squared

    def forward(self, embeddings: Float[Tensor, "n d"]) -> Float[Tensor, ""]:
        check_embeddings(embeddings)
        return self.weight * mean_norm(embeddings, self.squared)
