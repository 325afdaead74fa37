"""D²-coreset: points of a bigger batch drawn where its Gaussian is dense and the points drawn before are far.

In the released code of Roth, Milbich, Sinha, Gupta, Ommer, Cohen: Revisiting Training Strategies and Generalization
Performance in Deep Metric Learning, ICML 2020, but not in the paper.

Departs from the released code as coreset does. See also: coreset.
"""

from functools import partial

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lookalike.label_sets import Labels
from lookalike.samplers.bank import EmbeddingBank
from lookalike.samplers.batch_sampler import BatchSampler, shows_settings
from lookalike.samplers.big_batch import Covering, from_bank, pairwise
from lookalike.samplers.grouping import Groups


def log_densities(vectors: Float[Tensor, "b d"]) -> Float[Tensor, " b"]:
    """log N(x; mean, covariance) of the points themselves, up to a constant; flat directions play no part."""
    centred = vectors.double() - vectors.double().mean(0)
    inverse: Tensor = torch.linalg.pinv(centred.T @ centred / max(1, len(vectors) - 1), hermitian=True)
    return -0.5 * (centred @ inverse * centred).sum(1)


def d2_sample(
    vectors: Float[Tensor, "b d"], count: int, generator: torch.Generator, power: float = 1.0
) -> Integer[Tensor, " count"]:
    """The point nearest to a draw from N(mean, covariance), then points drawn with p ∝ N(x) · (Σ d² to those before)^λ.

    >>> sorted(d2_sample(torch.eye(3), 3, torch.Generator().manual_seed(0)).tolist())
    [0, 1, 2]
    """
    squares = pairwise(vectors).square().double()
    centre = vectors.mean(0)
    # (x − mean)ᵀ g / √(b − 1) of independent normals g has exactly the covariance of the points.
    normal = torch.randn(len(vectors), generator=generator, dtype=vectors.dtype)
    start = centre + normal @ (vectors - centre) / max(1, len(vectors) - 1) ** 0.5
    indices = [int((vectors - start).norm(dim=1).argmin())]
    free = log_densities(vectors)
    total = torch.zeros_like(free)
    for _ in range(count - 1):
        free[indices[-1]] = -torch.inf
        total += squares[indices[-1]]
        # Duplicates of drawn points have weight 0; the smallest number keeps them possible when nothing else is left.
        weights = free + power * total.clamp(min=torch.finfo(total.dtype).tiny).log()
        noise = torch.rand(len(weights), generator=generator, dtype=torch.float64)
        indices.append(int((weights - (-noise.log()).log()).argmax()))
    return torch.tensor(indices)


@shows_settings
def D2Coreset(
    labels: Labels,
    bank: EmbeddingBank,
    batch_size: int = 112,
    per_class: int = 2,
    big_batch: int = 512,
    power: float = 1.0,
    projection: int | None = None,
    batches: int | None = None,
    *,
    seed: int = 0,
    rank: int = 0,
    ranks: int = 1,
) -> BatchSampler:
    """D²: m / n typical images of a random big batch that lie far apart, each with n − 1 images of its class.

    `power` is λ, the weight of lying far apart; `projection` measures distances in that many random dimensions.
    """
    choose = partial(d2_sample, power=power)
    covering = Covering(Groups.of(labels), batch_size, per_class, big_batch, projection, choose)
    return from_bank(bank, covering, batches, seed=seed, rank=rank, ranks=ranks)
