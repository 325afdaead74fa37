"""Yuan, Deng, Tang, Tang, Chen: Signal-to-Noise Ratio: A Robust Distance Metric for Deep Metric Learning, CVPR 2019;
Revisiting, eq. 15 [math A15].

snr(i, j) = Var(e_i − e_j) / Var(e_i), variances over the coordinates; L = mean over active triplets of
[snr(a, p) − snr(a, n) + γ]_+ + λ · mean_a |Σ_m e_am|.

Departs from the paper: a ratio of variances, where eq. 15 prints sums of un-squared differences [math ERR-19]. Not
symmetric, and not a function of the similarities: it has no pair weights.
"""

import torch
from torch import Tensor, nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_at_least
from lookalike.geometry import SATURATION, Geometry, check_geometry, compare, normalise
from lookalike.loss_inputs import as_pairs, taint
from lookalike.losses.all_triplets import hinge_sums
from lookalike.reductions import mean_active
from lookalike.targets import Candidates, Embeddings, Targets, Triplets, Value

FAINTEST = 1e-12  # smallest variance of an anchor
LOUDEST = 1e15  # noise of a signal beyond this is no different


class SNR(nn.Module):
    """Reads the difference of two embeddings as noise on the anchor's signal: less for positives than for negatives.

    margin: γ, by which the noise of a negative must exceed that of a positive.
    sum_weight: λ, the weight of |Σ_m e_am|, which keeps the coordinates of an anchor balanced around 0.
    normalise: where embeddings live: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(self, margin: float = 0.2, sum_weight: float = 0.005, normalise: Geometry = "sphere") -> None:
        super().__init__()
        check_at_least(0, margin=margin)
        self.margin, self.sum_weight, self.normalise = margin, sum_weight, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        targets = as_pairs(targets, embeddings, candidates, or_triplets=True)
        rows = normalise(embeddings, self.normalise)
        columns = None if candidates is None else normalise(candidates, self.normalise)
        noise = self._noise(rows, columns)
        if isinstance(targets, Triplets):
            near, far = noise[targets.anchor, targets.positive], noise[targets.anchor, targets.negative]
            hinge = mean_active((near - far + self.margin).relu(), targets.valid)
        else:
            total, active = hinge_sums(noise, targets, self.margin)
            hinge = total / active.clamp(min=1)
        balance = self.sum_weight * rows.sum(1).abs().sum() / max(1, len(rows))
        return hinge + balance + taint(embeddings, candidates)

    def _noise(self, rows: Tensor, columns: Tensor | None) -> Tensor:
        """snr(i, j) of every row with every column: ‖c_i − c_j‖² / ‖c_i‖² of the vectors less their own mean."""
        left = rows - rows.mean(1, keepdim=True)
        right = None if columns is None else columns - columns.mean(1, keepdim=True)
        # raw vectors of any length: variances saturate as their products do
        signal = left.square().sum(1, keepdim=True).clamp(max=SATURATION)
        other = signal.T if right is None else right.square().sum(1).clamp(max=SATURATION)
        apart = (signal + other - 2 * compare(left, right, "none")).clamp(min=0)
        faintest = (apart.detach() / LOUDEST).clamp(min=FAINTEST * rows.shape[1])
        return apart / torch.maximum(signal, faintest)
