"""Fréchet-distance matching, FRD: the batch whose Gaussian is nearest to that of a bigger one.

Roth, Milbich, Sinha, Gupta, Ommer, Cohen: Revisiting Training Strategies and Generalization Performance in Deep Metric
Learning, ICML 2020, and released code.

Departs from the released code: it cannot be run there (a missing module). 1e-8 I, added there to both covariances so
that a numerical matrix root exists, is not needed here and left out. Classes of the big batch and of a candidate are
different where possible; there, both are drawn with replacement (`roth=True`). See also: distribution_match.
"""

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lookalike.label_sets import Labels
from lookalike.samplers.bank import EmbeddingBank
from lookalike.samplers.batch_sampler import BatchSampler, shows_settings
from lookalike.samplers.big_batch import Matching, from_bank
from lookalike.samplers.grouping import Groups


def root_traces(covariance: Float[Tensor, "d d"], centred: Float[Tensor, "k m d"]) -> Float[Tensor, " k"]:
    """tr (Σ_B Σ_c)^½ of every candidate, without a matrix root.

    Σ_c = AᵀA / (m − 1) with the centred candidate A, so Σ_B Σ_c has the eigenvalues of A Σ_B Aᵀ / (m − 1), which is
    only m × m, and zeros besides; the trace of the root is the sum of their roots. With fewer dimensions than images,
    R Σ_c R with R² = Σ_B has the same ones and is smaller, d × d.
    """
    m, d = centred.shape[1:]
    if m < d:
        product = centred @ covariance @ centred.mT
    else:
        values, vectors = torch.linalg.eigh(covariance)
        root = (vectors * values.clamp(min=0).sqrt()) @ vectors.mT
        product = root @ (centred.mT @ centred) @ root
    eigenvalues: Tensor = torch.linalg.eigvalsh(product / (m - 1))
    return eigenvalues.clamp(min=0).sqrt().sum(1)


def frechet_costs(big: Float[Tensor, "b d"], places: Integer[Tensor, "k m"]) -> Float[Tensor, " k"]:
    """‖μ_B − μ_c‖² + tr(Σ_B + Σ_c − 2 (Σ_B Σ_c)^½) of every candidate c, given by its places in B.

    >>> frechet_costs(torch.eye(4), torch.tensor([[0, 0, 1, 1]])).round(decimals=3)
    tensor([0.9740], dtype=torch.float64)
    """
    big = big.double()  # roots of eigenvalues near 0 lose half the digits
    parts = big[places]
    means = (parts.mean(1) - big.mean(0)).square().sum(1)
    whole, parts = big - big.mean(0), parts - parts.mean(1, keepdim=True)
    covariance = whole.T @ whole / (len(big) - 1)
    traces = covariance.trace() + parts.square().sum((1, 2)) / (places.shape[1] - 1)
    return means + traces - 2 * root_traces(covariance, parts)


@shows_settings
def Frechet(
    labels: Labels,
    bank: EmbeddingBank,
    batch_size: int = 112,
    per_class: int = 2,
    big_batch: int = 512,
    candidates: int = 10,
    roth: bool = False,
    batches: int | None = None,
    *,
    seed: int = 0,
    rank: int = 0,
    ranks: int = 1,
) -> BatchSampler:
    """FRD: of ten class-balanced candidates out of a big batch, the one with the most similar mean and covariance."""
    matching = Matching(Groups.of(labels), batch_size, per_class, big_batch, candidates, roth, frechet_costs)
    return from_bank(bank, matching, batches, seed=seed, rank=rank, ranks=ranks)
