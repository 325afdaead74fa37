"""The values of the papers [math A], as they reach the user: defaults, and presets by name."""

import pytest

from lookalike import losses
from lookalike.catalog import presets_of

DEFAULTS = {
    "contrastive": {"positive_margin": 0.0, "negative_margin": 1.0, "normalise": "sphere"},
    "cosine_contrastive": {"threshold": 0.5, "normalise": "ball"},
    "margin_contrastive": {"positive_margin": 0.0, "negative_margin": 0.3841, "normalise": "ball"},
    "triplet": {"margin": 0.2, "squared": False, "normalise": "sphere"},
    "lifted_structure": {"margin": 1.0},
    "generalised_lifted": {"margin": 1.0, "norm_weight": 0.005, "reduction": "mean", "normalise": "none"},
    "lifted_star": {"alpha": 2.0, "beta": 50.0},
    "n_pair": {"norm_weight": 0.005, "positives": "mean", "normalise": "none"},
    "angular": {"angular_weight": 2.0, "positives": "mean", "normalise": "sphere"},
    "arcface": {"margin": 0.5, "scale": 16.0},
    "histogram": {"nodes": 65},
    "margin": {"margin": 0.2, "boundary_weight": 0.0, "learning_rate": 5e-4},
    "binomial_deviance": {"alpha": 2.0, "beta": 50.0, "threshold": 0.5},
    "multi_similarity": {"alpha": 2.0, "beta": 40.0, "threshold": 0.5, "mining_margin": 0.1},
    "bin_lifted": {"alpha": 2.0, "beta": 50.0, "threshold": 0.5},
    "nca": {"temperature": 1.0},
    "proxy_nca": {"scale": 3.0, "rate_factor": 50.0},
    "proxy_nca_pp": {"temperature": 0.1, "rate_factor": 100.0},
    "proxy_anchor": {"alpha": 32.0, "delta": 0.1, "rate_factor": 100.0},
    "normalised_softmax": {"temperature": 0.05, "learning_rate": 1e-5},
    "soft_triple": {"scale": 8.0, "temperature": 0.1, "margin": 0.01, "centre_weight": 0.2, "per_class": 2},
    "hierarchical_proxy": {"alpha": 32.0, "delta": 0.1, "coarse_weight": 0.1, "every": 1},
    "quadruplet": {"margin": 1.0, "second_margin": 0.5},
    "snr": {"margin": 0.2, "sum_weight": 0.005},
    "fastap": {"bins": 10},
    "top_k_precision": {"k": 4, "margin": 0.1},
    "supcon": {"temperature": 0.1},
    "info_nce": {"temperature": 0.1},
    "circle": {"margin": 0.25, "scale": 80.0},
    "cosface": {"margin": 0.35, "scale": 64.0},
    "smooth_ap": {"temperature": 0.01},
    "tuplet_margin": {"margin": 0.1, "scale": 64.0},
    "intra_pair_variance": {"positive_slack": 0.01, "negative_slack": 0.01},
    "threshold_consistent_margin": {"positive_margin": 0.9, "negative_margin": 0.5, "positive_weight": 1.0},
    "sub_center_arcface": {"per_class": 3, "margin": 0.5, "scale": 64.0, "learning_rate": 5e-4},
    "sphereface": {"margin": 4, "annealing": 0.0, "scale": 1.0, "normalise": "none"},
    "large_margin_softmax": {"margin": 4, "annealing": 0.0, "scale": 1.0, "normalise": "none"},
    "p2s_grad": {"learning_rate": 5e-4, "normalise": "sphere"},
    "instance": {"scale": 1.0, "normalise": "none"},
    "pnp": {"variant": "O", "temperature": 0.01, "bound": 2.0, "power": 1.0},
    "recall_at_k": {"k": (1, 2, 4, 8, 16), "temperature": 0.01, "k_temperature": 1.0},
    "dynamic_soft_margin": {"nodes": 512},
    "centroid_triplet": {"margin": 0.5, "normalise": "sphere"},
    "vicreg": {"invariance": 25.0, "variance": 25.0, "covariance": 1.0, "epsilon": 1e-4, "normalise": "none"},
    "manifold": {"context_weight": 1.0, "alpha": 0.8, "offset": 5e-4, "rate_factor": 100.0},
    "siglip": {"bias": -10.0, "rate_factor": 1.0},
    "ranked_list": {"boundary": 1.2, "margin": 0.4, "balance": 0.5, "negative_temperature": 10.0},
}
PRESETS = {
    ("margin_contrastive", "cub"): {"positive_margin": 0.0, "negative_margin": 0.3841},
    ("margin_contrastive", "cars"): {"positive_margin": 0.2652, "negative_margin": 0.5409},
    ("margin_contrastive", "inshop"): {"positive_margin": 0.2858, "negative_margin": 0.5130},
    ("margin_contrastive", "sop"): {"positive_margin": 0.2858, "negative_margin": 0.5130},
    ("triplet", "roth"): {"margin": 0.2, "squared": True, "normalise": "sphere"},
    ("triplet", "cub"): {"margin": 0.0961, "squared": False, "normalise": "ball"},
    ("triplet", "cars"): {"margin": 0.1190, "normalise": "ball"},
    ("triplet", "inshop"): {"margin": 0.0451, "normalise": "ball"},
    ("triplet", "sop"): {"margin": 0.0451, "normalise": "ball"},
    ("n_pair", "roth"): {"positives": "one"},
    ("histogram", "cub"): {"nodes": 65},
    ("histogram", "cars"): {"nodes": 65},
    ("histogram", "sop"): {"nodes": 11},
    ("multi_similarity", "roth"): {"alpha": 2.0, "beta": 40.0, "threshold": 0.5, "mining_margin": 0.1},
    ("multi_similarity", "cub"): {"alpha": 2.0, "beta": 40.0, "threshold": 0.5, "mining_margin": None},
    ("multi_similarity", "cars"): {"alpha": 14.35, "beta": 75.83, "threshold": 0.66, "mining_margin": None},
    ("multi_similarity", "inshop"): {"alpha": 8.49, "beta": 57.38, "threshold": 0.41, "mining_margin": None},
    ("multi_similarity", "sop"): {"alpha": 2.0, "beta": 40.0, "threshold": 0.5, "mining_margin": None},
    ("quadruplet", "roth"): {"margin": 0.2, "second_margin": 0.2},
    ("quadruplet", "doc"): {"margin": 1.0, "second_margin": 0.5},
    ("soft_triple", "cub"): {"scale": 20.0, "temperature": 0.1, "centre_weight": 0.2, "margin": 0.01},
    ("soft_triple", "cars"): {"scale": 17.69, "temperature": 19.18, "centre_weight": 0.0669, "margin": 0.3588},
    ("soft_triple", "inshop"): {"scale": 20.0, "temperature": 0.1, "centre_weight": 0.2, "margin": 0.01},
    ("soft_triple", "sop"): {"scale": 100.0, "temperature": 47.9, "centre_weight": 0.2, "margin": 0.3145},
    ("normalised_softmax", "sop"): {"learning_rate": 2e-3},
    ("fastap", "cub"): {"bins": 17},
    ("fastap", "cars"): {"bins": 27},
    ("fastap", "sop"): {"bins": 16},
}


def assert_settings(loss, settings):
    for key, value in settings.items():
        assert getattr(loss, key) == value, key


@pytest.mark.parametrize("name", losses.names())
def test_defaults_are_the_printed_values(name):
    assert_settings(losses.build(name, classes=3, dim=4), DEFAULTS[name])


@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_presets_carry_the_values_of_the_papers(name, preset):
    assert_settings(losses.build(name, preset=preset, classes=3, dim=4), PRESETS[name, preset])


@pytest.mark.parametrize("name", losses.names())
def test_every_preset_builds(name):
    for preset in presets_of(losses.MEMBERS[name]):
        losses.build(name, preset=preset, classes=3, dim=4)


def test_a_setting_overrides_its_preset():
    assert losses.build("margin_contrastive", preset="cars", negative_margin=0.9).negative_margin == 0.9


def test_margin_boundaries():
    assert losses.Margin().boundary.tolist() == pytest.approx([1.2])
    assert losses.build("margin", preset="roth_0.6", classes=3).boundary.tolist() == pytest.approx([0.6] * 3)
