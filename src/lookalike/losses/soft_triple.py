"""Qian, Shang, Sun, Hu, Li, Jin: SoftTriple Loss: Deep Metric Learning Without Triplet Sampling, ICCV 2019;
Revisiting, eq. 16-18 [math A13e].

S_c = Σ_k softmax_k(s_ck / γ) s_ck over the K centres of class c; L = mean CE( λ(S_c − δ · 1[c = y]) )
+ τ Σ_c Σ_{k < k′} √(2 + 1e-5 − 2 w_ck·w_ck′) / (C K (K − 1)).

Departs from the paper: eq. 16 lacks the factor e·ψ [math ERR-16], eq. 18 counts every pair of centres twice
[math ERR-17].
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check, check_at_least, check_positive
from lookalike.geometry import Geometry, check_geometry, compare, normalise
from lookalike.loss_inputs import as_classes, check_dim
from lookalike.losses.margin_softmax import margin_softmax
from lookalike.reductions import SMALLEST_EXPONENT
from lookalike.targets import Embeddings, Logits, Targets, Value

CCP = {"centres": 10, "learning_rate": None, "rate_factor": 100.0}  # common to all sets of Chance Constraints
PRESETS = {
    "cub": {"scale": 20.0, "temperature": 0.1, "centre_weight": 0.2, "margin": 0.01, **CCP},
    "cars": {"scale": 17.69, "temperature": 19.18, "centre_weight": 0.0669, "margin": 0.3588, **CCP},
    "inshop": {"scale": 20.0, "temperature": 0.1, "centre_weight": 0.2, "margin": 0.01, **CCP},
    "sop": {"scale": 100.0, "temperature": 47.9, "centre_weight": 0.2, "margin": 0.3145, **CCP},
}


class _SoftlyNearest(torch.autograd.Function):
    """S = Σ_k p_k s_k with p = softmax(s / γ) over dimension 1; ∂S/∂s_k = p_k (1 + (s_k − S) / γ)."""

    @staticmethod
    def forward(ctx: Any, similarities: Tensor, temperature: float) -> Tensor:
        floor = SMALLEST_EXPONENT[similarities.dtype]
        shares = (similarities - similarities.amax(1, keepdim=True)).div_(temperature).clamp_(min=floor).exp_()
        torch.threshold_(shares, 1.5 * math.exp(floor), 0.0)
        shares.div_(shares.sum(1, keepdim=True))
        nearest = (shares * similarities).sum(1)
        ctx.save_for_backward(similarities, shares, nearest)
        ctx.temperature = temperature
        return nearest

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        similarities, shares, nearest = ctx.saved_tensors
        slopes = (similarities - nearest[:, None]).div_(ctx.temperature).add_(1)
        return slopes.mul_(shares).mul_(gradient[:, None]), None


class SoftTriple(nn.Module):
    """Gives every class several centres, classifies by the softly nearest one, and lets idle centres merge.

    classes: the number of classes; labels run from 0 to classes − 1.
    dim: the dimension of the embeddings.
    centres: K, the number of centres per class.
    scale: λ, which multiplies the similarities to the classes before the softmax over them.
    temperature: γ, of the softmax over the centres of a class; the smaller, the more the nearest centre counts.
    margin: δ, taken off the similarity to the own class.
    centre_weight: τ, the weight of the distances between the centres of a class.
    learning_rate: of the centres; None: rate_factor times the network's.
    rate_factor: the learning rate of the centres as a multiple of the network's, if learning_rate is None.
    normalise: where embeddings and centres are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        classes: int,
        dim: int,
        centres: int = 2,
        scale: float = 8.0,
        temperature: float = 0.1,
        margin: float = 0.01,
        centre_weight: float = 0.2,
        learning_rate: float | None = 1e-5,
        rate_factor: float = 100.0,
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check_at_least(1, classes=classes, dim=dim)
        check(centres >= 1, f"a class needs at least 1 centre, not {centres}")
        check_positive(temperature=temperature)
        self.scale, self.temperature, self.margin, self.centre_weight = scale, temperature, margin, centre_weight
        self.learning_rate, self.rate_factor = learning_rate, rate_factor
        self.normalise = check_geometry(normalise)
        self.centres = nn.Parameter(nn.init.kaiming_uniform_(torch.empty(classes * centres, dim), a=5**0.5))
        self.classes, self.per_class = classes, centres

    def parameter_groups(self, base_lr: float) -> list[dict[str, Any]]:
        rate = base_lr * self.rate_factor if self.learning_rate is None else self.learning_rate
        return [{"params": [self.centres], "lr": rate, "weight_decay": 0.0}]

    def logits(self, embeddings: Embeddings) -> Logits:
        check_dim(embeddings, self.centres)
        return self.scale * self._similarities(embeddings)

    def forward(self, embeddings: Embeddings, targets: Targets) -> Value:
        labels = as_classes(targets, embeddings, self.centres.view(self.classes, self.per_class, -1))
        similarities = self._similarities(embeddings)
        return margin_softmax(similarities, labels, lambda own: own - self.margin, self.scale) + self._merging()

    def _similarities(self, embeddings: Tensor) -> Tensor:
        """S_c of every sample and class: to the softly nearest centre."""
        centres = self.centres.view(self.classes, self.per_class, -1)
        # the k-th centres of all classes side by side: a softmax over k then runs along whole rows
        by_centre = compare(embeddings, centres.transpose(0, 1).flatten(0, 1), self.normalise)
        by_centre = by_centre.view(len(embeddings), self.per_class, self.classes)
        by_class: Tensor = _SoftlyNearest.apply(by_centre, self.temperature)  # type: ignore[no-untyped-call]
        return by_class

    def _merging(self) -> Tensor:
        """τ times the mean half distance between the centres of a class: pulls idle centres together."""
        unit = normalise(self.centres, self.normalise).view(self.classes, self.per_class, -1)
        if self.per_class == 1:
            return 0.0 * unit.sum()
        apart = (2 + 1e-5 - 2 * compare(unit, unit, None)).clamp(min=0).sqrt()
        return self.centre_weight * apart.triu(1).sum() / (self.classes * self.per_class * (self.per_class - 1))
