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
from lookalike.geometry import Geometry, check_geometry, log_sum_exp, normalise, product, softplus
from lookalike.losses.n_pair import NPair, one_positive
from lookalike.targets import Pairs, Targets, as_pairs

CHUNK = 2**23  # entries of a chunk: a few buffers of this size are alive at once


class Angular(nn.Module):
    """Narrows the angle at the negative in the triangle it forms with a positive pair, besides the N-pair pull."""

    def __init__(
        self,
        alpha: float = 45.0,  # α in degrees
        angular_weight: float = 2.0,  # λ
        norm_weight: float = 0.005,  # ν of the N-pair part
        positives: Literal["mean", "one"] = "mean",
        normalise: Geometry = "sphere",  # of the angular part
    ) -> None:
        super().__init__()
        check(0 < alpha < 90, f"alpha is an angle between 0 and 90 degrees, not {alpha}")
        self.tangent_squared = math.tan(math.radians(alpha)) ** 2
        self.angular_weight, self.positives = angular_weight, positives
        self.n_pair = NPair(norm_weight=norm_weight, positives=positives)
        self.normalise = check_geometry(normalise)

    def targets(self, labels: Tensor, generator: torch.Generator | None = None) -> Pairs:
        return self.n_pair.targets(labels, generator)

    def forward(
        self, embeddings: Float[Tensor, "n d"], targets: Targets, candidates: Float[Tensor, "m d"] | None = None
    ) -> Float[Tensor, ""]:
        pairs = as_pairs(targets, embeddings, candidates)
        if isinstance(targets, Tensor) and self.positives == "one":
            pairs = one_positive(pairs)
        rows = normalise(embeddings, self.normalise)
        columns = rows if candidates is None else normalise(candidates, self.normalise)
        agreement: Tensor = self.n_pair(embeddings, pairs, candidates)
        return agreement + self.angular_weight * self._angles(rows, columns, pairs)

    def _angles(self, rows: Tensor, columns: Tensor, pairs: Pairs) -> Tensor:
        """Mean over anchors of the mean over its positives p of log(1 + Σ_n e^{f_apn})."""
        similarities = product(rows, columns)
        others = similarities if columns is rows else None
        slots, filled = pairs.slots()
        weights = filled / filled.sum(1, keepdim=True).clamp(min=1) / filled.any(1).sum().clamp(min=1)
        step = max(1, CHUNK // max(1, similarities.numel()))
        total = similarities.sum() * 0
        for start in range(0, slots.shape[1], step):
            part = slice(start, start + step)
            arguments = (similarities, others, columns, pairs.negative, slots[:, part], weights[:, part])
            if step >= slots.shape[1]:
                total = total + self._chunk(*arguments)
            else:
                total = total + checkpoint(self._chunk, *arguments, use_reentrant=False)
        return total

    def _chunk(
        self,
        similarities: Tensor,
        others: Tensor | None,
        columns: Tensor,
        negative: Tensor,
        slots: Tensor,
        weights: Tensor,
    ) -> Tensor:
        """Σ weight · log(1 + Σ_n e^{f_apn}) over the positives p in these slots; `others` are p's similarities, if
        known.
        """
        chosen = slots.T.flatten()
        of_positive = product(columns[chosen], columns) if others is None else others.index_select(0, chosen)
        repeats = slots.shape[1]
        sums = 4 * self.tangent_squared * (similarities.repeat(repeats, 1) + of_positive)
        between = similarities.gather(1, slots).T.flatten()
        exponents = log_sum_exp(sums, negative.repeat(repeats, 1)) - 2 * (1 + self.tangent_squared) * between
        return (softplus(exponents) * weights.T.flatten()).sum()
