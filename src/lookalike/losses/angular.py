"""Wang, Zhou, Wen, Liu, Lin: Deep Metric Learning with Angular Loss, ICCV 2017; Revisiting, eq. 5.

f_apn = 4 tan²α (e_a + e_p)·e_n − 2(1 + tan²α) e_a·e_p;  L = N-pair(z) + λ · mean over anchors of log(1 + Σ_n
e^{f_apn}).

Departs from the paper: the printed equation has misplaced brackets and e_a·e_n in its last term (ERR-6); the mean
over the anchor's positives instead of one (ERR-43, see n_pair). All positive pairs are taken a chunk at a time and
recomputed in the backward pass when there is more than one chunk, so memory stays O(n²).
"""

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lookalike.errors import check
from lookalike.geometry import Geometry, check_geometry, compare, normalise, norms
from lookalike.losses.n_pair import one_positive
from lookalike.reductions import log_sum_exp, softplus
from lookalike.targets import Pairs, Targets, as_pairs, is_labels

CHUNK = 2**23  # entries of a chunk: a few buffers of this size are alive at once


class Angular(nn.Module):
    """Narrows the angle at the negative in the triangle it forms with a positive pair, besides the N-pair pull."""

    def __init__(
        self,
        alpha: float = 45.0,  # α in degrees
        angular_weight: float = 2.0,  # λ
        norm_weight: float = 0.005,  # ν of the N-pair part
        norm_squared: bool = False,
        positives: Literal["mean", "one"] = "mean",
        normalise: Geometry = "sphere",  # of the angular part
    ) -> None:
        super().__init__()
        check(0 < alpha < 90, f"alpha is an angle between 0 and 90 degrees, not {alpha}")
        check(positives in ("mean", "one"), f"positives must be 'mean' or 'one', not {positives!r}")
        self.tangent_squared = math.tan(math.radians(alpha)) ** 2
        self.angular_weight, self.norm_weight, self.norm_squared = angular_weight, norm_weight, norm_squared
        self.positives, self.normalise = positives, check_geometry(normalise)

    def targets(self, labels: Tensor, generator: torch.Generator | None = None) -> Pairs:
        pairs = Pairs.within(labels)
        return one_positive(pairs, generator) if self.positives == "one" else pairs

    def forward(
        self, embeddings: Float[Tensor, "n d"], targets: Targets, candidates: Float[Tensor, "m d"] | None = None
    ) -> Float[Tensor, ""]:
        pairs = as_pairs(targets, embeddings, candidates)
        if is_labels(targets) and self.positives == "one":
            pairs = one_positive(pairs)
        slots, filled = pairs.slots()
        agreements = compare(embeddings, candidates, "none")
        weights = filled.to(agreements.dtype) / filled.sum(1, keepdim=True).clamp(min=1)
        weights = weights / filled.any(1).sum().clamp(min=1)
        n_pair = softplus(log_sum_exp(agreements, pairs.negative)[:, None] - agreements.gather(1, slots))
        angles = self._angles(embeddings, candidates, pairs.negative, slots, weights)
        norm = self.norm_weight * (norms(embeddings, self.norm_squared).sum() / max(1, len(embeddings)))
        return (n_pair * weights).sum() + norm + self.angular_weight * angles

    def _angles(
        self, embeddings: Tensor, candidates: Tensor | None, negative: Tensor, slots: Tensor, weights: Tensor
    ) -> Tensor:
        """Σ weight · log(1 + Σ_n e^{f_apn}) over all positives p."""
        rows = normalise(embeddings, self.normalise)
        columns = None if candidates is None else normalise(candidates, self.normalise)
        lifted = (
            compare(2 * self.tangent_squared**0.5 * rows, None, None)
            if columns is None
            else self._lifted(rows, columns)
        )
        step = max(1, CHUNK // max(1, lifted.numel()))
        total = 0 * lifted.sum()
        for start in range(0, slots.shape[1], step):
            part = slice(start, start + step)
            arguments = (lifted, columns, negative, slots[:, part], weights[:, part])
            if step >= slots.shape[1]:
                total = total + self._chunk(*arguments)
            else:
                total = total + checkpoint(self._chunk, *arguments, use_reentrant=False)
        return total

    def _lifted(self, rows: Tensor, columns: Tensor) -> Tensor:
        """4 tan²α ⟨e_i, e_j⟩."""
        return compare(4 * self.tangent_squared * rows, columns, None)

    def _chunk(
        self, lifted: Tensor, columns: Tensor | None, negative: Tensor, slots: Tensor, weights: Tensor
    ) -> Tensor:
        """Σ weight · log(1 + Σ_n e^{f_apn}) over the positives p in these slots."""
        chosen = slots.flatten()
        of_positive = lifted.index_select(0, chosen) if columns is None else self._lifted(columns[chosen], columns)
        sums = lifted[:, None, :] + of_positive.view(*slots.shape, -1)
        closeness = (1 + self.tangent_squared) / (2 * self.tangent_squared) * lifted.gather(1, slots)
        return (softplus(log_sum_exp(sums, negative[:, None, :]) - closeness) * weights).sum()
