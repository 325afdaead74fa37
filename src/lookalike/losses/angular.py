"""Wang, Zhou, Wen, Liu, Lin: Deep Metric Learning with Angular Loss, ICCV 2017; Revisiting, eq. 5 [math A5].

f_apn = 4 tan²α (e_a + e_p)·e_n − 2(1 + tan²α) e_a·e_p;  L = N-pair(z) + λ · mean over anchors of log(1 + Σ_n
e^{f_apn}).

Departs from the paper: the printed equation has misplaced brackets and e_a·e_n in its last term [math ERR-6]; the mean
over the anchor's positives instead of one [math ERR-43]. Positives are taken a chunk at a time, so memory stays O(n²).
See also: n_pair.
"""

import math
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check
from lookalike.geometry import Geometry, check_geometry, compare, mean_norm, normalise
from lookalike.label_sets import Labels
from lookalike.loss_inputs import as_pairs, is_labels, slots_of_positives, taint
from lookalike.losses.n_pair import draw_pairs, one_positive
from lookalike.reductions import CHUNK, in_chunks, log_sum_exp, softplus
from lookalike.targets import Candidates, Embeddings, Pairs, Targets, Value


class Angular(nn.Module):
    """Narrows the angle at the negative in the triangle it forms with a positive pair, besides the N-pair pull.

    alpha: α, in degrees; the loss bounds the angle at the negative by it.
    angular_weight: λ, the weight of the angular part; the N-pair part has weight 1.
    norm_weight: ν, the weight of the mean length of the raw embeddings.
    norm_squared: whether that length is squared.
    positives: "mean" or "sum" over all positives of an anchor, or "one" drawn at random.
    normalise: the geometry of the angular part: "sphere", "ball" or "none". The N-pair part takes raw vectors.
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        alpha: float = 45.0,
        angular_weight: float = 2.0,
        norm_weight: float = 0.005,
        norm_squared: bool = False,
        positives: Literal["mean", "sum", "one"] = "mean",
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check(0 < alpha < 90, f"alpha is an angle between 0 and 90 degrees, not {alpha}")
        check(positives in ("mean", "sum", "one"), f"positives must be 'mean', 'sum' or 'one', not {positives!r}")
        self.tangent_squared = math.tan(math.radians(alpha)) ** 2
        self.angular_weight, self.norm_weight, self.norm_squared = angular_weight, norm_weight, norm_squared
        self.positives, self.normalise = positives, check_geometry(normalise)
        # vectors of the angular part are in place already; only raw ones can be so long that products must saturate
        self.saturating: Geometry | None = "none" if normalise == "none" else None

    def targets(self, labels: Labels, generator: torch.Generator | None = None) -> Pairs:
        return draw_pairs(labels, self.positives, generator)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        pairs = as_pairs(targets, embeddings, candidates)
        if self.positives == "one" and is_labels(targets):
            pairs = one_positive(pairs)
        slots, filled = slots_of_positives(pairs)
        agreements = compare(embeddings, candidates, "none")
        weights = filled.to(agreements.dtype)
        if self.positives == "sum":
            weights = weights / max(1, len(filled))  # by b, whoever has a positive
        else:
            weights = weights / filled.sum(1, keepdim=True).clamp(min=1) / filled.any(1).sum().clamp(min=1)
        n_pair = softplus(log_sum_exp(agreements, pairs.negative)[:, None] - agreements.gather(1, slots))
        norm = self.norm_weight * mean_norm(embeddings, self.norm_squared)

        rows = normalise(embeddings, self.normalise)
        columns = None if candidates is None else normalise(candidates, self.normalise)
        if columns is None:
            lifted = compare(2 * self.tangent_squared**0.5 * rows, None, self.saturating)
        else:
            lifted = compare(4 * self.tangent_squared * rows, columns, self.saturating)
        angles = partial(self._angles, lifted, columns, pairs.negative, slots, weights)
        step = max(1, CHUNK // max(1, lifted.numel()))
        width = slots.shape[1]
        angular = angles(slice(width)) if step >= width else in_chunks(angles, width, step)
        return (n_pair * weights).sum() + norm + self.angular_weight * angular + taint(embeddings, candidates)

    def _angles(
        self, lifted: Tensor, columns: Tensor | None, negative: Tensor, slots: Tensor, weights: Tensor, part: slice
    ) -> Tensor:
        """Σ weight · log(1 + Σ_n e^{f_apn}) over the positives p in this part of the slots; lifted = 4 tan²α ⟨e, e⟩."""
        slots, weights = slots[:, part], weights[:, part]
        positives = slots.flatten()
        if columns is None:
            of_positives = lifted.index_select(0, positives)
        else:
            of_positives = compare(4 * self.tangent_squared * columns[positives], columns, self.saturating)
        sums = lifted[:, None, :] + of_positives.view(*slots.shape, lifted.shape[1])
        closeness = (1 + self.tangent_squared) / (2 * self.tangent_squared) * lifted.gather(1, slots)
        return (softplus(log_sum_exp(sums, negative[:, None, :]) - closeness) * weights).sum()
