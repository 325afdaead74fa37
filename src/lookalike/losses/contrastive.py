"""Hadsell, Chopra, LeCun: Dimensionality Reduction by Learning an Invariant Mapping, CVPR 2006 [math A1a, A1d].

Revisiting Training Strategies, eq. 1; with similarity="cosine" the form of Multi-Similarity, eq. 4.

Departs from the paper: the mean over positive pairs plus the mean over negative pairs, as the released code, instead
of the printed sum over b [math ERR-1]; the same for the b triplets of a miner. See also: cosine_contrastive,
margin_contrastive.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check, check_at_least
from lookalike.geometry import Geometry, Squares, check_geometry, distances
from lookalike.loss_inputs import value_of_distances
from lookalike.reductions import mean_where
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Triplets, Value


class Contrastive(nn.Module):
    """Pulls positives inside a small ball around the anchor and pushes negatives out of a larger one.

    positive_margin: m+, the distance below which a positive is left alone.
    negative_margin: m−, the distance beyond which a negative is left alone.
    threshold: λ, the similarity below which a negative is left alone; cosine form only.
    similarity: "euclidean" distances, or "cosine" for the form of Multi-Similarity.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        positive_margin: float = 0.0,
        negative_margin: float = 1.0,
        threshold: float = 0.5,
        similarity: Literal["euclidean", "cosine"] = "euclidean",
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check(similarity in ("euclidean", "cosine"), f"similarity must be 'euclidean' or 'cosine', not {similarity!r}")
        check_at_least(0, positive_margin=positive_margin, negative_margin=negative_margin)
        self.positive_margin, self.negative_margin, self.threshold = positive_margin, negative_margin, threshold
        self.similarity, self.normalise = similarity, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_distances(self, embeddings, targets, candidates, or_triplets=True)

    def of_similarities(self, similarities: Similarities, targets: Pairs | Triplets, lengths: Squares = None) -> Value:
        if self.similarity == "cosine":
            return self._cosine(similarities, targets)
        apart = distances(similarities, lengths)
        if isinstance(targets, Triplets):
            near, far = apart[targets.anchor, targets.positive], apart[targets.anchor, targets.negative]
            positive = negative = targets.valid
        else:
            near, far, positive, negative = apart, apart, targets.positive, targets.negative
        pull, push = (near - self.positive_margin).relu(), (self.negative_margin - far).relu()
        return mean_where(pull, positive) + mean_where(push, negative)

    def _cosine(self, similarities: Tensor, targets: Pairs | Triplets) -> Tensor:
        """(1/m) Σ_i ( Σ_N [S − λ]_+ − Σ_P S )."""
        push = (similarities - self.threshold).relu()
        if isinstance(targets, Triplets):
            terms = push[targets.anchor, targets.negative] - similarities[targets.anchor, targets.positive]
            return mean_where(terms, targets.valid)
        terms = torch.where(targets.negative, push, 0.0) - torch.where(targets.positive, similarities, 0.0)
        return terms.sum() / max(1, len(similarities))
