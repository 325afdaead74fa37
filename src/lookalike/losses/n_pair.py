"""Sohn: Improved Deep Metric Learning with Multi-class N-pair Loss Objective, NeurIPS 2016; Revisiting, eq. 4
[math A4].

L = mean over anchors of log(1 + Σ_n e^{s_n − s_p}) + ν · mean ‖z‖, s = raw dot products, all other-class samples as
negatives.

Departs from the paper: the mean over the anchor's positives instead of a sum over all of them, divided by the batch
(`positives="sum"`), or one drawn at random ([math ERR-43]; `positives="one"`); the negative is not normalised either
[math ERR-5]; the norm is not squared unless `norm_squared`. `reading="lifted"` is how Multi-Similarity reads this loss:
eq. 6 with a single positive [math ERR-39]. See also: angular, info_nce.
"""

from dataclasses import replace
from typing import Literal

import torch
from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.choices import pick
from lookalike.errors import check, check_at_least
from lookalike.geometry import Geometry, check_geometry, compare, mean_norm
from lookalike.label_sets import Labels
from lookalike.loss_inputs import as_pairs, is_labels, taint
from lookalike.reductions import log_sum_exp, mean_where, softplus
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value

PRESETS = {"roth": {"positives": "one"}}


def one_positive(pairs: Pairs, generator: torch.Generator | None = None) -> Pairs:
    """The same pairs with one positive per anchor, drawn uniformly (None: from torch's default generator)."""
    column = pick(pairs.positive, generator)[:, None]
    one = torch.zeros_like(pairs.positive).scatter_(1, column, True)
    return replace(pairs, positive=pairs.positive & one)


def draw_pairs(labels: Labels, positives: str, generator: torch.Generator | None) -> Pairs:
    """All pairs of the batch; with one positive per anchor where `positives` is "one"."""
    pairs = Pairs.within(labels)
    return one_positive(pairs, generator) if positives == "one" else pairs


class NPair(nn.Module):
    """Makes the anchor agree more with its positive than with any of the many negatives, by a soft maximum.

    norm_weight: ν, the weight of the mean length of the raw embeddings.
    norm_squared: whether that length is squared.
    positives: "mean" or "sum" over all positives of an anchor, or "one" drawn at random.
    reading: "n_pair" as published, or "lifted" as Multi-Similarity reads it.
    margin: λ, by which the positive must agree more than the negatives; lifted reading only.
    normalise: "sphere", "ball" or "none"; None: raw vectors, or the sphere for the lifted reading.
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        norm_weight: float = 0.005,
        norm_squared: bool = False,
        positives: Literal["mean", "sum", "one"] = "mean",
        reading: Literal["n_pair", "lifted"] = "n_pair",
        margin: float = 1.0,
        normalise: Geometry | None = None,
    ) -> None:
        super().__init__()
        check(positives in ("mean", "sum", "one"), f"positives must be 'mean', 'sum' or 'one', not {positives!r}")
        check(reading in ("n_pair", "lifted"), f"reading must be 'n_pair' or 'lifted', not {reading!r}")
        check_at_least(0, norm_weight=norm_weight)
        lifted = reading == "lifted"
        self.norm_weight, self.norm_squared = 0.0 if lifted else norm_weight, norm_squared
        self.positives, self.reading, self.margin = positives, reading, margin
        self.normalise = check_geometry(normalise or ("sphere" if lifted else "none"))

    def targets(self, labels: Labels, generator: torch.Generator | None = None) -> Pairs:
        return draw_pairs(labels, self.positives, generator)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        pairs = as_pairs(targets, embeddings, candidates)
        if self.positives == "one" and is_labels(targets):
            pairs = one_positive(pairs)
        value = self.of_similarities(compare(embeddings, candidates, self.normalise), pairs)
        norm = self.norm_weight * mean_norm(embeddings, self.norm_squared)
        return value + norm + taint(embeddings, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        """The log-ratios alone; the norm of raw vectors is added in `forward`."""
        ratios = log_sum_exp(similarities, pairs.negative)[:, None] - similarities
        terms = (self.margin + ratios).relu() if self.reading == "lifted" else softplus(ratios)
        positives = pairs.positive.sum(1)
        share = 1 if self.positives == "sum" else positives.clamp(min=1)
        per_anchor = torch.where(pairs.positive, terms, 0.0).sum(1) / share
        if self.reading == "lifted":
            return per_anchor.sum()
        if self.positives == "sum":
            return per_anchor.sum() / max(1, len(per_anchor))  # by b, whoever has a positive
        return mean_where(per_anchor, positives > 0)
