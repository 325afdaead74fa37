"""Li, Min, Song, Cheng, Kang, Wei, Wei, Wang: Rethinking the Optimization of Average Precision: Only Penalizing
Negative Instances before Positive Ones Is Enough, AAAI 2022 [math A24k].

R_p = Σ_N σ((S_n − S_p)/T), the negatives ranked before a positive; L = mean over anchors of (1/|P|) Σ_p of R (variant
"O"), (1 + R) log(1 + R) ("Iu"), (bR − log(1 + bR)) / b² ("Ib"), log(1 + R) ("Ds") or 1 − (1 + R)^−α ("Dq").

Departs from pytorch-metric-learning: an anchor is not its own positive. See also: smooth_ap, recall_at_k.
"""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check, check_positive
from lookalike.geometry import Geometry, check_geometry
from lookalike.loss_inputs import slots_of_positives, value_of_pairs
from lookalike.losses.soft_ranks import passed
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value

Variant = Literal["O", "Iu", "Ib", "Ds", "Dq"]


class PNP(nn.Module):
    """Counts the negatives that every positive has before it in the ranking, softly, and leaves positives in any order.

    variant: what the count is worth: "O" itself; "Iu" and "Ib" press more the longer it is, "Ds" and "Dq" less.
    temperature: T, which divides differences of similarity; the smaller, the closer to the count itself.
    bound: b of variant "Ib", whose slope stays below 1/b.
    power: α of variant "Dq", how fast its slope falls with the count.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        variant: Variant = "O",
        temperature: float = 0.01,
        bound: float = 2.0,
        power: float = 1.0,
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check(variant in get_args(Variant), f"variant must be 'O', 'Iu', 'Ib', 'Ds' or 'Dq', not {variant!r}")
        check_positive(temperature=temperature, bound=bound, power=power)
        self.variant, self.temperature, self.bound, self.power = variant, temperature, bound, power
        self.normalise = check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        slots, filled = slots_of_positives(pairs)
        logits = similarities / self.temperature
        before = passed(logits, logits.gather(1, slots), pairs.negative)
        total = torch.where(filled, self._worth(before), 0.0).sum(1)
        return (total / filled.sum(1).clamp(min=1)).sum() / filled.any(1).sum().clamp(min=1)

    def _worth(self, count: Tensor) -> Tensor:
        if self.variant == "Iu":
            return (1 + count) * count.log1p()
        if self.variant == "Ib":
            return (self.bound * count - (self.bound * count).log1p()) / self.bound**2
        if self.variant == "Ds":
            return count.log1p()
        return 1 - (1 + count) ** -self.power if self.variant == "Dq" else count
