"""Roth, Milbich, Sinha, Gupta, Ommer, Cohen: Revisiting Training Strategies, ICML 2020, sec. 5: the spectral decay ρ
[math F.7].

ρ = KL(U ‖ p) = −(1/n) Σ log(n p_i), p the singular values of the (uncentred) embeddings, scaled to sum 1: 0 for a
flat spectrum. Only the n directions of the numerical rank count: beyond it there are rounding errors, with gradients
without bounds. Differentiable, to be added to any loss; the evaluation reports the same number.

Departs from the paper: ρ is a measurement there and lowered indirectly (miners.switched); here it can be minimised as
such.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import check
from lookalike.geometry import Geometry, check_geometry, normalise
from lookalike.loss_inputs import check_embeddings

FLOOR = 1e-12  # smallest share of a singular value


def spectral_decay(embeddings: Float[Tensor, "n d"], drop: int = 0) -> Float[Tensor, ""]:
    """ρ of the rows, without the `drop` largest singular values.

    >>> spectral_decay(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor(0.0589)
    """
    values: Tensor = torch.linalg.svdvals(embeddings)
    least = max(embeddings.shape) * torch.finfo(values.dtype).eps * values[:1].detach()
    counted = (values > least) & (torch.arange(len(values), device=values.device) >= drop)
    number = counted.sum().clamp(min=1)
    shares = values / torch.where(counted, values, 0.0).sum().clamp(min=FLOOR)
    return -torch.where(counted, (number * shares.clamp(min=FLOOR)).log(), 0.0).sum() / number


class SpectralDecay(nn.Module):
    """Flattens the spectrum of the batch, so that no few directions carry everything that was learnt.

    weight: the factor of ρ.
    drop: how many of the largest singular values are left alone.
    normalise: where the embeddings lie before: "sphere", "ball" or "none".
    """

    def __init__(self, weight: float = 0.1, drop: int = 0, normalise: Geometry = "sphere") -> None:
        super().__init__()
        check(drop >= 0, f"drop must be at least 0, not {drop}")
        self.weight, self.drop, self.normalise = weight, drop, check_geometry(normalise)

    def forward(self, embeddings: Float[Tensor, "n d"]) -> Float[Tensor, ""]:
        check_embeddings(embeddings)
        return self.weight * spectral_decay(normalise(embeddings, self.normalise), self.drop)
