"""The four theorems of Sampling Wisely and what follows from its loss, tried on random rankings [math I.3, A17].

Lu, Xu, Zhang, Duan, Mei: Sampling Wisely: Deep Image Embedding by Top-k Precision Optimization, ICCV 2019. ℓ_k is our
loss `top_k_precision`, ℓ_Prec the number of irrelevant items among the k nearest, n+ the number of relevant ones, γ the
margin. Scores are distinct, k and γ vary, n+ is smaller than k in some cases and not in others.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor

from lookalike.losses import TopKPrecision
from lookalike.targets import Pairs
from papers.statement import Statement, tried

SOURCE = "Sampling Wisely"
CANDIDATES = 12


@dataclass(frozen=True)
class Rankings:
    """Many queries with the same k and γ."""

    scores: Float[Tensor, "n m"]
    relevant: Bool[Tensor, "n m"]
    k: int
    margin: float

    def loss(self, scores: Float[Tensor, "n m"] | None = None) -> Float[Tensor, " n"]:
        """ℓ_k of every query, for these or for other scores."""
        pairs = Pairs(self.relevant, ~self.relevant)
        return TopKPrecision(self.k, self.margin).per_query(self.scores if scores is None else scores, pairs)

    def intruders(self, scores: Float[Tensor, "n m"] | None = None) -> Integer[Tensor, " n"]:
        """ℓ_Prec: irrelevant ones among the k highest scores."""
        nearest = (self.scores if scores is None else scores).topk(self.k, dim=1).indices
        return (~self.relevant).gather(1, nearest).sum(1)

    def missing(self) -> Integer[Tensor, " n"]:
        """(k − n+)_+: how many of the k nearest are irrelevant at best."""
        return (self.k - self.relevant.sum(1)).clamp(min=0)

    def separated(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Scores with all relevant ones raised until theorem 2 or 4 applies, and the queries where one can."""
        best = torch.where(self.relevant, self.scores, -torch.inf).sort(1, descending=True).values
        worst = torch.where(self.relevant, -torch.inf, self.scores).sort(1, descending=True).values
        inside = self.relevant.sum(1).clamp(max=self.k)
        held = best.gather(1, (inside - 1)[:, None])
        rival = worst.gather(1, self.missing()[:, None])
        slack = 0.01 + torch.rand(held.shape, generator=generator, dtype=held.dtype)
        lift = (rival + self.margin + slack - held).clamp(min=0)
        return torch.where(self.relevant, self.scores + lift, self.scores), (rival > -torch.inf).squeeze(1)


def rankings(cases: int, generator: torch.Generator) -> list[Rankings]:
    """About `cases` queries with at least one relevant item, for k = 1 … 10 and a margin each."""
    several = []
    for k in range(1, 11):
        shape = (-(-cases // 10), CANDIDATES)
        scores = torch.randn(shape, generator=generator, dtype=torch.float64)
        share = torch.rand(shape[0], 1, generator=generator, dtype=torch.float64)
        relevant = torch.rand(shape, generator=generator, dtype=torch.float64) < share
        relevant[:, 0] |= ~relevant.any(1)
        margin = 0.01 + 0.6 * float(torch.rand((), generator=generator))
        several.append(Rankings(scores, relevant, k, margin))
    return several


def top_k_statements(cases: int, generator: torch.Generator) -> list[Statement]:
    """Theorems 1 to 4, and monotony, invariances and the gradient of ℓ_k."""
    several = rankings(cases, generator)
    (first, third), (second, fourth) = _bounds(several), _separations(several, generator)
    return [first, second, third, fourth, *_invariances(several, generator)]


def _bounds(several: list[Rankings]) -> list[Statement]:
    few, many = [], []
    for case in several:
        slack = case.loss() - case.margin * (case.intruders() - case.missing())
        slack = torch.minimum(slack, (case.intruders() - case.missing()).double())
        scarce = case.relevant.sum(1) < case.k
        few.append(slack[scarce])
        many.append(slack[~scarce])
    return [
        tried("T1", "n+ < k: ℓ_k ≥ γ (ℓ_Prec − (k − n+)) ≥ 0", f"{SOURCE}, theorem 1", torch.cat(few)),
        tried("T3", "n+ ≥ k: ℓ_k ≥ γ ℓ_Prec", f"{SOURCE}, theorem 3", torch.cat(many)),
    ]


def _separations(several: list[Rankings], generator: torch.Generator) -> list[Statement]:
    few, many = [], []
    for case in several:
        scores, possible = case.separated(generator)
        error = case.loss(scores).abs() + (case.intruders(scores) - case.missing()).abs()
        scarce = case.relevant.sum(1) < case.k
        few.append(-error[possible & scarce])
        many.append(-error[possible & ~scarce])
    return [
        tried(
            "T2",
            "n+ < k, worst positive − (k − n+ + 1)-th negative > γ: ℓ_k = 0, ℓ_Prec = k − n+",
            f"{SOURCE}, theorem 2",
            torch.cat(few),
        ),
        tried(
            "T4", "n+ ≥ k, k-th positive − best negative > γ: ℓ_k = ℓ_Prec = 0", f"{SOURCE}, theorem 4", torch.cat(many)
        ),
    ]


def _invariances(several: list[Rankings], generator: torch.Generator) -> list[Statement]:
    monotone, shifted, permuted, sums = [], [], [], []
    for case in several:
        before = case.loss()
        one = torch.randint(CANDIDATES, (len(before), 1), generator=generator)
        step = torch.rand(one.shape, generator=generator, dtype=torch.float64) * 3
        change = case.loss(case.scores.scatter_add(1, one, step)) - before
        monotone.append(torch.where(case.relevant.gather(1, one).squeeze(1), -change, change))
        shifted.append(-(case.loss(case.scores + step) - before).abs())
        order = torch.randperm(CANDIDATES, generator=generator)
        other = Rankings(case.scores[:, order], case.relevant[:, order], case.k, case.margin)
        permuted.append(-(other.loss() - before).abs())
        scores = case.scores.clone().requires_grad_()
        (slope,) = torch.autograd.grad(case.loss(scores).sum(), scores)
        sums.append(-slope.sum(1).abs())
    claims = {
        "ℓ_k falls with positive and rises with negative scores": monotone,
        "a constant added to all scores changes nothing": shifted,
        "the order of the candidates changes nothing": permuted,
        "the gradient sums to 0": sums,
    }
    names = ("monotone", "shift", "order", "gradient")
    return [
        tried(name, claim, f"{SOURCE}, loss", torch.cat(slacks))
        for name, (claim, slacks) in zip(names, claims.items(), strict=True)
    ]
