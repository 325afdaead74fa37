"""Wieczorek, Rychalska, Dąbrowski: On the Unreasonable Effectiveness of Centroids in Image Retrieval, ICONIP 2021
[math A24n].

L = mean over anchors of [‖e − c_P‖² − ‖e − c_N‖² + γ]_+, c_P the mean of the anchor's positives (without itself), c_N
the nearest mean of another class. A mean is not normalised again.

Departs from the paper: unit vectors, where it leaves embeddings raw. See also: triplet, proxy_nca (learnt centres).
"""

import torch
from torch import Tensor, nn

from lookalike.errors import UserError, check
from lookalike.geometry import Geometry, check_geometry, compare, normalise, norms, squared_distances
from lookalike.reductions import mean_where
from lookalike.targets import Candidates, Embeddings, Pairs, Targets, Value, as_pairs, taint


class CentroidTriplet(nn.Module):
    """Asks that the mean of an anchor's positives be nearer than the mean of any other class, by a margin.

    margin: γ, by which the nearest foreign mean must be farther away, in squared distance.
    normalise: where embeddings live before their means are taken: "sphere", "ball" or "none".
    """

    def __init__(self, margin: float = 0.5, normalise: Geometry = "sphere") -> None:
        super().__init__()
        check(margin >= 0, f"margin must be at least 0, not {margin}")
        self.margin, self.normalise = margin, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        pairs = as_pairs(targets, embeddings, candidates)
        rows = normalise(embeddings, self.normalise)
        columns = rows if candidates is None else normalise(candidates, self.normalise).to(rows.dtype)
        own = _means(pairs.positive, columns)
        near = norms(rows - own, squared=True)
        far = torch.where(pairs.negative, self._to_classes(rows, columns, pairs), torch.inf)
        nearest = far.amin(1) if far.shape[1] else near + torch.inf
        counted = pairs.positive.any(1) & (nearest < torch.inf)
        hinges = (near - torch.where(counted, nearest, 0.0) + self.margin).relu()
        return mean_where(hinges, counted) + taint(embeddings, candidates)

    def _to_classes(self, rows: Tensor, columns: Tensor, pairs: Pairs) -> Tensor:
        """‖e_i − c‖² of every row to the mean of every column's class, over the columns that take part."""
        if pairs.candidate_labels is None:
            raise UserError("centroid_triplet takes means of classes: give it labels, or Pairs made from labels")
        labels = pairs.candidate_labels.to(rows.device)
        present = (pairs.positive | pairs.negative).any(0)
        centroids = _means((labels[:, None] == labels) & present, columns)
        lengths = norms(rows, squared=True), norms(centroids, squared=True)
        return squared_distances(compare(rows, centroids, "none" if self.normalise == "none" else None), lengths)


def _means(mask: Tensor, vectors: Tensor) -> Tensor:
    """Per row of the mask, the mean of the vectors it names; 0 where it names none."""
    shares = mask.to(vectors.dtype)
    return compare(shares / shares.sum(1, keepdim=True).clamp(min=1), vectors.T, None)
