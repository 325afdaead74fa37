"""Gürbüz, Can, Alatan: Deep Metric Learning with Chance Constraints, supplement, loss "C2" (values of the MLRC search)
[math A1c].

L = mean over active positive pairs of [d − m+]_+ + mean over active negative pairs of [m− − d]_+.
See also: contrastive (means over all pairs), cosine_contrastive.
"""

from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_at_least
from lookalike.geometry import Geometry, Squares, check_geometry, distances
from lookalike.loss_inputs import value_of_distances
from lookalike.reductions import weighted
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value

PRESETS = {
    "cub": {"positive_margin": 0.0, "negative_margin": 0.3841},
    "cars": {"positive_margin": 0.2652, "negative_margin": 0.5409},
    "inshop": {"positive_margin": 0.2858, "negative_margin": 0.5130},
    "sop": {"positive_margin": 0.2858, "negative_margin": 0.5130},
}


class MarginContrastive(nn.Module):
    """Pulls positives into a shell and pushes negatives out of another, averaging only what still moves.

    positive_margin: m+, the distance below which a positive is left alone.
    negative_margin: m−, the distance beyond which a negative is left alone.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self, positive_margin: float = 0.0, negative_margin: float = 0.3841, normalise: Geometry = "ball"
    ) -> None:
        super().__init__()
        check_at_least(0, positive_margin=positive_margin, negative_margin=negative_margin)
        self.positive_margin, self.negative_margin = positive_margin, negative_margin
        self.normalise = check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_distances(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs, lengths: Squares = None) -> Value:
        apart = distances(similarities, lengths)
        d = apart.detach()
        pulled, pushed = pairs.positive & (d > self.positive_margin), pairs.negative & (d < self.negative_margin)

        # the value: Σ_pulled (d − m+) / |pulled| + Σ_pushed (m− − d) / |pushed|, a mean without members being 0
        shares = pulled.to(d.dtype).div_(pulled.sum().clamp(min=1))
        shares = shares - pushed.to(d.dtype).div_(pushed.sum().clamp(min=1))
        from_margins = self.negative_margin * pushed.any().to(d.dtype)
        value = (shares * d).sum() + from_margins - self.positive_margin * pulled.any().to(d.dtype)

        # the pair weights ∂L/∂d: the same shares, because the value is linear in the distances of active pairs
        weights = shares
        return weighted(apart, value, weights)
