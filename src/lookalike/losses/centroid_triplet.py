"""Wieczorek, Rychalska, Dąbrowski: On the Unreasonable Effectiveness of Centroids in Image Retrieval, ICONIP 2021
[math A24n].

L = mean over anchors of [‖e − c_P‖² − ‖e − c_N‖² + γ]_+, c_P the mean of the anchor's positives (without itself), c_N
the nearest mean of another class. A mean is not normalised again. Where classes are not known, a sample and its
positives are one, and so are candidates that share an anchor.

Departs from the paper: unit vectors, where it leaves embeddings raw. See also: triplet, proxy_nca (learnt centres).
"""

import torch
from torch import Tensor, nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_at_least
from lookalike.geometry import Geometry, check_geometry, compare, normalise, norms, squared_distances
from lookalike.loss_inputs import as_pairs, taint
from lookalike.reductions import mean_where
from lookalike.targets import Candidates, Embeddings, Pairs, Targets, Value


class CentroidTriplet(nn.Module):
    """Asks that the mean of an anchor's positives be nearer than the mean of any other class, by a margin.

    margin: γ, by which the nearest foreign mean must be farther away, in squared distance.
    normalise: where embeddings live before their means are taken: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(self, margin: float = 0.5, normalise: Geometry = "sphere") -> None:
        super().__init__()
        check_at_least(0, margin=margin)
        self.margin, self.normalise = margin, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        pairs = as_pairs(targets, embeddings, candidates)
        rows = normalise(embeddings, self.normalise)
        columns = rows if candidates is None else normalise(candidates, self.normalise).to(rows.dtype)
        own = _means(pairs.positive, columns)
        near = norms(rows - own, squared=True)
        classes = _classes(pairs, candidates is None) & (pairs.positive | pairs.negative).any(0)
        far = torch.where(pairs.negative, self._apart(rows, _means(classes, columns)), torch.inf)
        nearest = far.amin(1) if far.shape[1] else near + torch.inf
        counted = pairs.positive.any(1) & (nearest < torch.inf)
        hinges = (near - torch.where(counted, nearest, 0.0) + self.margin).relu()
        return mean_where(hinges, counted) + taint(embeddings, candidates)

    def _apart(self, rows: Tensor, means: Tensor) -> Tensor:
        """‖e − c‖² of every row to every mean."""
        products = compare(rows, means, "none" if self.normalise == "none" else None)
        return squared_distances(products, (norms(rows, squared=True), norms(means, squared=True)))


def _classes(pairs: Pairs, within: bool) -> Tensor:
    """Which columns are of one class."""
    if pairs.candidate_labels is not None:
        return pairs.candidate_labels[:, None] == pairs.candidate_labels
    positive = pairs.positive.to(torch.float32)
    together = pairs.positive if within else compare(positive.T, positive.T, None) > 0
    return together | torch.eye(len(together), dtype=torch.bool, device=together.device)


def _means(mask: Tensor, vectors: Tensor) -> Tensor:
    """Per row of the mask, the mean of the vectors it names; 0 where it names none."""
    shares = mask.to(vectors.dtype)
    return compare(shares / shares.sum(1, keepdim=True).clamp(min=1), vectors.T, None)
