"""Chen, Chen, Zhang, Huang: Beyond Triplet Loss: A Deep Quadruplet Network, CVPR 2017; Revisiting, eq. 14
[math A14].

L = mean [d_ap − d_an + γ1]_+ + mean [d_ap − d_nl + γ2]_+, with l a random sample of a third class.

Departs from the paper: the second term starts with d_ap [math ERR-18]; the fourth sample is drawn by label, where the
released code compares indices. Values as printed; the released code ran with 0.2 and 0.2 (preset "roth").
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.choices import pick
from lookalike.errors import UserError, check_at_least
from lookalike.geometry import Geometry, Squares, check_geometry, compare_with_squares, distances, distances_between
from lookalike.loss_inputs import as_pairs, as_triplets, is_labels, taint
from lookalike.miners.distance_weighted import DistanceWeighted
from lookalike.reductions import mean_where
from lookalike.targets import Candidates, Embeddings, Quadruplets, Targets, Triplets, Value

PRESETS = {"roth": {"margin": 0.2, "second_margin": 0.2}, "doc": {"margin": 1.0, "second_margin": 0.5}}


class Quadruplet(nn.Module):
    """A triplet that also keeps the positive pair shorter than the gap between two foreign classes.

    margin: γ1, by which the negative must be farther from the anchor than the positive.
    second_margin: γ2, by which two foreign classes must be farther apart than the positive pair.
    generator: draws the fourth sample, and the triplets where it gets labels alone; None: torch's default.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        margin: float = 1.0,
        second_margin: float = 0.5,
        generator: torch.Generator | None = None,
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check_at_least(0, margin=margin, second_margin=second_margin)
        self.margin, self.second_margin, self.generator = margin, second_margin, generator
        self.normalise = check_geometry(normalise)

    def complete(self, triplets: Triplets) -> Quadruplets:
        """The `triplets`, each with a fourth sample, drawn from the classes of neither anchor nor negative."""
        if triplets.labels is None:
            raise UserError("quadruplet draws a sample of a third class: give it labels, or Triplets with labels")
        ours, theirs = triplets.labels[triplets.positive], triplets.labels[triplets.negative]
        third = (triplets.labels != ours[:, None]) & (triplets.labels != theirs[:, None])
        return Quadruplets(triplets, pick(third, self.generator), triplets.valid & third.any(1))

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        targets = self.sampled(embeddings, targets, candidates)
        similarities, lengths = compare_with_squares(embeddings, candidates, self.normalise)
        between = None
        if candidates is not None:
            foreign, other = candidates[targets.triplets.negative], candidates[targets.other]
            between = distances_between(foreign, other, self.normalise).diagonal()
        return self.of_similarities(similarities, targets, lengths, between) + taint(embeddings, candidates)

    def of_similarities(
        self,
        similarities: Float[Tensor, "n m"],
        targets: Quadruplets,
        lengths: Squares = None,
        between: Float[Tensor, " t"] | None = None,
    ) -> Value:
        """`between` is d_nl; None: read from the similarities, which are then those of the batch with itself."""
        apart, triplets = distances(similarities, lengths), targets.triplets
        near, far = apart[triplets.anchor, triplets.positive], apart[triplets.anchor, triplets.negative]
        if between is None:
            between = apart[triplets.negative, targets.other]
        first = mean_where((near - far + self.margin).relu(), triplets.valid)
        return first + mean_where((near - between + self.second_margin).relu(), targets.complete)

    def sampled(self, embeddings: Tensor, targets: Targets, candidates: Tensor | None = None) -> Quadruplets:
        """The quadruplets of this batch: mined by distance from labels, or completed from triplets."""
        if isinstance(targets, Quadruplets):
            return targets
        if is_labels(targets) and candidates is None:
            return self.complete(DistanceWeighted(generator=self.generator)(embeddings, targets))
        if isinstance(targets, Triplets):
            return self.complete(as_triplets(targets, embeddings, candidates))
        as_pairs(targets, embeddings, candidates)
        raise UserError("quadruplet takes labels or Triplets, not Pairs: sample them with a miner")
