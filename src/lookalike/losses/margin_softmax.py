"""Softmax over classes in which the own class has to win by a margin: what the losses for faces share.

They differ in what they make of the own cosine: cos θ − m, cos(θ + γ), or cos(mθ).
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn.functional import cross_entropy


def margin_softmax(
    similarities: Float[Tensor, "n c"],
    labels: Int64[Tensor, " n"],
    margin: Callable[[Tensor], Tensor],
    scale: float | Float[Tensor, "n #c"],
) -> Float[Tensor, ""]:
    """The mean cross entropy of scaled similarities to classes, after `margin` has lowered those to the own classes.

    >>> margin_softmax(torch.tensor([[0.9, 0.4]]), torch.tensor([0]), lambda own: own - 0.5, scale=16.0)
    tensor(0.6931)
    """
    own = similarities.gather(1, labels[:, None])
    logits = scale * similarities.scatter(1, labels[:, None], margin(own))
    return cross_entropy(logits, labels, reduction="sum") / max(1, len(labels))


def turned(cosine: Tensor, angle: float) -> Tensor:
    """cos(θ + γ) from cos θ; where θ + γ > π it continues as cos θ − γ sin γ, so that it stays monotone.

    >>> turned(torch.tensor([1.0, 0.0]), math.pi / 2).round(decimals=3)
    tensor([-0., -1.])
    """
    bounded = cosine.clamp(-1 + 1e-7, 1 - 1e-7)
    sine = (1 - bounded.square()).sqrt()
    past_pi = bounded - angle * math.sin(angle)
    beyond = bounded * math.cos(angle) - sine * math.sin(angle)
    return torch.where(bounded >= -math.cos(angle), beyond, past_pi)


def multiplied(cosine: Tensor, times: int, annealing: float = 0.0) -> Tensor:
    """(λ cos θ + ψ) / (1 + λ), ψ = (−1)^k cos(mθ) − 2k for θ between kπ/m and (k + 1)π/m: falls from 1 to 1 − 2m.

    cos(mθ) is the Chebyshev polynomial of cos θ: no angle is computed, whose slope would be infinite at 0.

    >>> multiplied(torch.tensor([1.0, 0.0, -1.0]), 2)
    tensor([ 1., -1., -3.])
    """
    before, polynomial = torch.ones_like(cosine), cosine
    for _ in range(times - 1):
        before, polynomial = polynomial, 2 * cosine * polynomial - before
    turns = torch.zeros_like(cosine)
    for part in range(1, times):
        turns = turns + (cosine <= math.cos(part * math.pi / times)).to(cosine.dtype)
    psi = (1 - 2 * (turns % 2)) * polynomial - 2 * turns
    return (annealing * cosine + psi) / (1 + annealing)
