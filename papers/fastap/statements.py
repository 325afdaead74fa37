"""FastAP against exact average precision, and its gradient in closed form [math I.4, A16].

Cakir, He, Xia, Kulis, Sclaroff: Deep Metric Learning to Rank, CVPR 2019, and its supplement, eq. 17. Soft binning is
exact where every item sits on a bin's centre. An item between two centres is split, and more bins do not put it
together again: FastAP does not converge to AP.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lookalike.losses import FastAP
from lookalike.losses.soft_histogram import soft_histogram
from lookalike.targets import Pairs
from papers.statement import Statement, tried

SOURCE = "FastAP"
ITEMS = 6
FEWER = 100  # cases of statements that are slow to try
BINS = 24
GROWING = (24, 100, 1000, 10000)


def fastap_of(squared: Float[Tensor, "n m"], relevant: Bool[Tensor, "n m"], bins: int) -> Float[Tensor, " n"]:
    """FastAP of every row of squared distances, from our loss (whose value is 1 − the mean over rows)."""
    loss, similarities = FastAP(bins), 1 - squared / 2
    rows = [Pairs(near[None], ~near[None]) for near in relevant]
    return torch.stack(
        [1 - loss.of_similarities(row[None], near) for row, near in zip(similarities, rows, strict=True)]
    )


def average_precision(squared: Float[Tensor, "n m"], relevant: Bool[Tensor, "n m"]) -> Float[Tensor, " n"]:
    """Exact AP of every row.

    >>> average_precision(torch.tensor([[0.1, 0.2, 0.3]]), torch.tensor([[True, False, True]]))
    tensor([0.8333])
    """
    hits = relevant.gather(1, squared.argsort(1)).to(squared.dtype)
    ranks = torch.arange(1, hits.shape[1] + 1, dtype=squared.dtype)
    return (hits * hits.cumsum(1) / ranks).sum(1) / hits.sum(1)


def placed(cases: int, apart: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Squared distances on different centres, at least `apart` bins from one another, and which items are relevant."""
    slots = torch.arange(0, BINS - apart + 1, apart)
    order = torch.rand(cases, len(slots), generator=generator).argsort(1)[:, :ITEMS]
    relevant = torch.rand(cases, ITEMS, generator=generator) < 0.5
    relevant[:, 0] |= ~relevant.any(1)
    return slots[order].double() * (4 / BINS), relevant


def fastap_statements(cases: int, generator: torch.Generator) -> list[Statement]:
    centred, near = placed(cases, 1, generator)
    exact = -(fastap_of(centred, near, BINS) - average_precision(centred, near)).abs()
    off, relevant = scattered(cases, generator)
    below = average_precision(off, relevant) - fastap_of(off, relevant, BINS)
    return [
        tried("centres", "all z on different centres: FastAP = AP", f"{SOURCE}, eq. 11", exact),
        tried("bound", "items 2 Δ or more apart: FastAP ≤ AP", f"{SOURCE}, eq. 11", below),
        _perfect(cases, generator),
        _mass(cases, generator),
        _no_convergence(off[:FEWER], relevant[:FEWER]),
        _gradient(min(FEWER, cases), generator),
    ]


def scattered(cases: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Like `placed`, but between the centres: slots of three bins leave two between any two items."""
    squared, relevant = placed(cases, 3, generator)
    return squared + torch.rand(squared.shape, generator=generator, dtype=torch.float64) * (4 / BINS), relevant


def _perfect(cases: int, generator: torch.Generator) -> Statement:
    draws = torch.rand(cases, ITEMS, generator=generator, dtype=torch.float64)
    relevant = torch.arange(ITEMS).expand(cases, -1) < 3
    squared = torch.where(relevant, 1.8 * draws, 2 + 2 * draws)  # centres 0 … 1.8 and 2 … 4
    slack = -(1 - fastap_of(squared, relevant, 20)).abs()
    return tried("perfect", "positives and negatives in disjoint bins, positives first: FastAP = 1", SOURCE, slack)


def _mass(cases: int, generator: torch.Generator) -> Statement:
    positions = torch.rand(cases, ITEMS, generator=generator, dtype=torch.float64) * BINS
    relevant = torch.rand(cases, ITEMS, generator=generator) < 0.5
    slack = -(soft_histogram(positions, relevant, BINS + 1).sum(1) - relevant.sum(1)).abs()
    return tried("mass", "Σ_l h+_l = number of positives", SOURCE, slack)


def _no_convergence(squared: Tensor, relevant: Tensor) -> Statement:
    """Converging would at least halve the gap to AP from the first number of bins to the last."""
    gaps = convergence(squared, relevant)
    shown = ", ".join(f"{gap.mean():.3f} at B = {bins}" for bins, gap in gaps.items())
    slack = gaps[GROWING[0]] / 2 - gaps[GROWING[-1]]
    claim = "FastAP → AP as the number of bins B grows"
    return tried("limit", claim, f"{SOURCE}, as may be expected", slack, expected=False, remark=f"AP − FastAP: {shown}")


def convergence(squared: Float[Tensor, "n m"], relevant: Bool[Tensor, "n m"]) -> dict[int, Float[Tensor, " n"]]:
    """AP − FastAP of every ranking at each number of bins in `GROWING`."""
    exact = average_precision(squared, relevant)
    return {bins: exact - fastap_of(squared, relevant, bins) for bins in GROWING}


def _gradient(cases: int, generator: torch.Generator) -> Statement:
    labels, slacks = torch.tensor([0, 0, 1, 1, 1, 2, 2]), []
    pairs = Pairs.within(labels)
    for _ in range(cases):
        psi = torch.randn(3, len(labels), generator=generator, dtype=torch.float64)
        psi = (psi / psi.norm(dim=0)).requires_grad_()
        value = 1 - FastAP(10).of_similarities(psi.T @ psi, pairs)
        (slope,) = torch.autograd.grad(value, psi)
        slacks.append(-(slope - closed_form(psi.detach(), pairs, 10)).abs().max())
    claim = "dFastAP/dΨ = −(2/M) Ψ Σ_l (F+B+ + B+F+ + F−B− + B−F−)"
    return tried("eq. 17", claim, f"{SOURCE}, supplement", torch.stack(slacks))


def closed_form(psi: Float[Tensor, "d m"], pairs: Pairs, bins: int) -> Float[Tensor, "d m"]:
    """Eq. 17 as [math A16] writes it, all bins at once; the unit columns of Ψ are treated as free."""
    size, width = psi.shape[1], 4 / bins
    apart = (2 - 2 * psi.T @ psi)[None] - width * torch.arange(bins + 1, dtype=psi.dtype)[:, None, None]
    kernel = (1 - apart.abs() / width).clamp(min=0)
    slope = torch.where(kernel > 0, -apart.sign() / width, 0.0)
    near, far = ((kernel * mask).sum(2) for mask in (pairs.positive, pairs.negative))
    near_so_far, far_so_far = near.cumsum(0), far.cumsum(0)
    total = near_so_far + far_so_far
    inverse = torch.where(total > 0, 1 / total, 0.0).square()
    count = pairs.positive.sum(1)
    pulls, pushes = near * far_so_far * inverse, near * near_so_far * inverse
    later = pulls.sum(0) - pulls.cumsum(0)
    of_near = ((near_so_far * total + near * far_so_far) * inverse + later) / count
    of_far = -(pushes.sum(0) - pushes.cumsum(0) + pushes) / count
    both = torch.zeros(size, size, dtype=psi.dtype)
    for weights, mask in ((of_near, pairs.positive), (of_far, pairs.negative)):
        sides = slope * mask
        both += (weights[:, :, None] * sides + sides * weights[:, None, :]).sum(0)
    return -(2 / size) * psi @ both
