"""Distance-distribution matching, DDM: the batch that looks most like a bigger one, by mean, spread and distances.

Roth, Milbich, Sinha, Gupta, Ommer, Cohen: Revisiting Training Strategies and Generalization Performance in Deep Metric
Learning, ICML 2020, and released code.

Departs from the released code: the histograms of distances are compared as histograms, by the Wasserstein distance on
their bin centres; there, the bin heights are taken for samples (`roth_w1=True`). Classes of the big batch and of a
candidate are different where possible; there, both are drawn with replacement (`roth=True`). See also: frechet.
"""

from functools import partial

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lookalike.label_sets import Labels
from lookalike.samplers.bank import EmbeddingBank
from lookalike.samplers.batch_sampler import BatchSampler, shows_settings
from lookalike.samplers.big_batch import Matching, from_bank, pairwise
from lookalike.samplers.grouping import Groups

BINS = 50
WEIGHT = 75 * 2  # the released code adds the Wasserstein distance in both directions, which are equal


def histograms(
    big: Float[Tensor, "b d"], places: Integer[Tensor, "k m"]
) -> tuple[Float[Tensor, " bins"], Float[Tensor, "k bins"], float]:
    """Shares of the distances in 50 bins from the smallest to the largest of the big batch, and the width of a bin."""
    table, b = pairwise(big), len(big)
    high, low = float(table.max()), float(table.fill_diagonal_(torch.inf).min())
    width = (high - low) / BINS
    bins = ((table - low) / (width or 1.0)).clamp_(0, BINS - 1).to(torch.int64).fill_diagonal_(0).flatten()
    whole = bins.bincount(minlength=BINS)  # every pair twice, and the diagonal
    whole[0] -= b
    # A candidate's distances are among those of the big batch: they are looked up, not computed again.
    k, m = places.shape
    rows, columns = torch.triu_indices(m, m, 1)
    inside = bins[places[:, rows] * b + places[:, columns]] + BINS * torch.arange(k)[:, None]
    parts = inside.flatten().bincount(minlength=BINS * k).view(k, BINS)
    return whole.to(big.dtype) / (b * (b - 1)), parts.to(big.dtype) / len(rows), width


def matching_costs(
    big: Float[Tensor, "b d"], places: Integer[Tensor, "k m"], roth_w1: bool = False
) -> Float[Tensor, " k"]:
    """‖μ_B − μ_c‖ + ‖σ_B − σ_c‖ + 150 W₁(histogram_B, histogram_c) of every candidate c, given by its places in B.

    >>> matching_costs(torch.eye(4), torch.tensor([[0, 1, 2, 3]]))
    tensor([0.])
    """
    parts = big[places]
    means = (parts.mean(1) - big.mean(0)).norm(dim=1)
    spreads = (parts.std(1, correction=0) - big.std(0, correction=0)).norm(dim=1)
    whole, shares, width = histograms(big, places)
    if roth_w1:
        wasserstein = (shares.sort(1).values - whole.sort().values).abs().mean(1)
    else:
        wasserstein = (shares.cumsum(1) - whole.cumsum(0)).abs().sum(1) * width
    costs: Tensor = means + spreads + WEIGHT * wasserstein
    return costs


@shows_settings
def DistributionMatch(
    labels: Labels,
    bank: EmbeddingBank,
    batch_size: int = 112,
    per_class: int = 2,
    big_batch: int = 512,
    candidates: int = 10,
    roth: bool = False,
    roth_w1: bool = False,
    batches: int | None = None,
    *,
    seed: int = 0,
    rank: int = 0,
    ranks: int = 1,
) -> BatchSampler:
    """DDM: of ten class-balanced candidates out of a big batch, the one whose distances are distributed most alike.

    `roth_w1` compares the heights of their histograms as if they were samples, as the released code does.

    >>> labels = torch.arange(8) // 2
    >>> bank = EmbeddingBank.of(torch.randn(8, 2, generator=torch.Generator().manual_seed(0)))
    >>> sampler = DistributionMatch(labels, bank, batch_size=4, per_class=2, big_batch=8)
    >>> [len(set(labels[batch].tolist())) for batch in sampler]
    [2, 2]
    """
    cost = partial(matching_costs, roth_w1=roth_w1)
    matching = Matching(Groups.of(labels), batch_size, per_class, big_batch, candidates, roth, cost)
    return from_bank(bank, matching, batches, seed=seed, rank=rank, ranks=ranks)
