"""Weights while similarities move, and weights of a batch: numbers against the closed form, figures to be read."""

import math

import pytest
import torch

from lookalike import losses
from lookalike.analysis import (
    dependence,
    draw_weight_curves,
    draw_weight_maps,
    map_numbers,
    pair_losses,
    weight_curves,
    weight_maps,
)
from lookalike.analysis.weight_curves import NEGATIVE, POSITIVES, RIVALS
from lookalike.errors import UserError
from tests.fixtures.figure_rules import assert_readable

LABELS = torch.tensor([0, 0, 1, 1, 2, 2])
TABLE = {  # S, P, N of every pair loss at its default settings
    "bin_lifted": (1, 0, 1),
    "binomial_deviance": (1, 0, 0),
    "circle": (1, 1, 1),
    "contrastive": (1, 0, 0),
    "cosine_contrastive": (1, 0, 0),
    "dynamic_soft_margin": (1, 1, 1),
    "fastap": (1, 1, 1),  # shifts are smaller than its bins
    "generalised_lifted": (1, 0, 1),
    "histogram": (0, 1, 0),
    "info_nce": (0, 1, 1),
    "intra_pair_variance": (1, 0, 1),
    "lifted_star": (0, 0, 1),
    "lifted_structure": (1, 1, 1),
    "margin": (1, 1, 1),
    "margin_contrastive": (1, 0, 1),
    "multi_similarity": (1, 1, 1),
    "n_pair": (0, 1, 1),
    "nca": (0, 1, 1),
    "pnp": (0, 1, 0),
    "quadruplet": (1, 1, 0),
    "ranked_list": (1, 0, 1),
    "recall_at_k": (0, 1, 1),
    "siglip": (1, 0, 0),
    "smooth_ap": (0, 1, 1),
    "supcon": (0, 1, 1),
    "threshold_consistent_margin": (1, 0, 1),
    "top_k_precision": (0, 1, 1),
    "triplet": (1, 1, 1),
    "tuplet_margin": (1, 1, 1),
}


def vectors() -> torch.Tensor:
    return torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.slow
@pytest.mark.parametrize("name", pair_losses())
def test_the_similarity_type_of_every_pair_loss(name):
    trials = 200 if name == "quadruplet" else 80  # its hinge with the wide margin rarely closes
    result = dependence(losses.build(name), trials=trials, generator=torch.Generator().manual_seed(0))
    assert (result.itself, result.positives, result.negatives) == TABLE[name]


def test_bins_as_wide_as_the_shifts_take_the_s_from_fastap():
    result = dependence(losses.FastAP(bins=64), trials=60, generator=torch.Generator().manual_seed(0))
    assert (result.itself, result.positives, result.negatives) == (False, True, True)


def test_curves_are_the_closed_form_of_multi_similarity():
    """w = 1 / (e^{β(λ − s)} + Σ_k e^{β(s_k − s)}), all negatives being mined here [math A10]."""
    curves = weight_curves(losses.MultiSimilarity(mining_margin=None), points=5)
    for place, weight in zip(curves.places, curves.itself, strict=True):
        total = math.exp(40 * (0.5 - place)) + sum(math.exp(40 * (rival - place)) for rival in (place, *RIVALS))
        assert weight == pytest.approx(1 / total, rel=1e-4)
    offset = sum(RIVALS) / len(RIVALS)
    for place, weight in zip(curves.places, curves.negatives, strict=True):
        rivals = [rival - offset + place - NEGATIVE for rival in RIVALS]
        total = math.exp(40 * (0.5 - NEGATIVE)) + 1 + sum(math.exp(40 * rival) for rival in rivals)
        assert weight == pytest.approx(1 / total, rel=1e-4)


@pytest.mark.parametrize("name", pair_losses())
def test_every_pair_loss_has_curves_and_only_ps_and_ns_move_them(name):
    curves = weight_curves(losses.build(name), points=9)
    _, positives, negatives = TABLE[name]
    weights = [*curves.itself, *curves.positives, *curves.negatives]
    assert all(math.isfinite(weight) for weight in weights)
    assert max(weights) > 0
    assert positives or len(set(curves.positives)) == 1
    assert negatives or len(set(curves.negatives)) == 1


def test_similarities_on_a_curve_stay_possible():
    reach = max(POSITIVES) - min(POSITIVES), max(RIVALS) - min(RIVALS)
    assert weight_curves(losses.NCA(), points=2).places[-1] + max(reach) / 2 <= 1


@pytest.mark.parametrize("name", ["snr", "angular", "proxy_anchor", "arcface"])
def test_losses_outside_are_refused_with_the_reason(name):
    loss = losses.build(name, classes=3, dim=4)
    with pytest.raises(UserError, match=f"{type(loss).__name__} lies outside General Pair Weighting: it"):
        weight_curves(loss)


def test_maps_pull_positives_and_push_negatives():
    maps = weight_maps({"ms": losses.MultiSimilarity(), "c": losses.CosineContrastive()}, vectors(), LABELS)
    same = LABELS[:, None] == LABELS
    assert all((weights[same] <= 0).all() and (weights[~same] >= 0).all() for weights in maps.values())
    shares = map_numbers(maps, LABELS)
    assert shares["c"]["positive pairs moved"] == 1
    assert shares["c"]["weight on the heaviest tenth of positive pairs"] == pytest.approx(1 / 6)


def test_figures_can_be_read():
    several = {"nca": losses.NCA(), "triplet": losses.Triplet()}
    curves = {name: weight_curves(loss, points=5) for name, loss in several.items()}
    assert_readable(draw_weight_curves(curves))
    maps = weight_maps(several, vectors(), LABELS)
    assert_readable(draw_weight_maps(maps, vectors(), LABELS))
    with pytest.raises(UserError, match="at least one loss"):
        draw_weight_curves({})
