"""Every pair loss in every form: how it is built, and the oracle of the same equation with the same symbols."""

import math
from functools import partial

import torch

from lookalike import losses
from lookalike.targets import Pairs
from tests.losses import further_oracles, oracles, ranking_oracles


def pair_cases():
    """name → (loss, oracle(z, c, pos, neg))."""
    o, r = oracles, ranking_oracles
    build = losses.build
    return {
        "contrastive": (build("contrastive"), o.contrastive),
        "contrastive margins": (
            build("contrastive", positive_margin=0.3, negative_margin=1.3),
            partial(o.contrastive, low=0.3, high=1.3),
        ),
        "contrastive ball": (build("contrastive", normalise="ball"), partial(o.contrastive, geometry="ball")),
        "contrastive raw": (build("contrastive", normalise="none"), partial(o.contrastive, geometry="none")),
        "contrastive cosine": (build("contrastive", similarity="cosine"), o.contrastive_gpw),
        "contrastive cosine 0.2": (
            build("contrastive", similarity="cosine", threshold=0.2, normalise="ball"),
            partial(o.contrastive_gpw, lam=0.2, geometry="ball"),
        ),
        "cosine_contrastive": (build("cosine_contrastive"), o.c1),
        "cosine_contrastive sphere": (
            build("cosine_contrastive", threshold=0.1, normalise="sphere"),
            partial(o.c1, lam=0.1, geometry="sphere"),
        ),
        "margin_contrastive": (build("margin_contrastive"), o.c2),
        "margin_contrastive cars": (
            build("margin_contrastive", preset="cars"),
            partial(o.c2, low=0.2652, high=0.5409),
        ),
        "margin_contrastive sphere": (
            build("margin_contrastive", normalise="sphere", negative_margin=1.2),
            partial(o.c2, high=1.2, geometry="sphere"),
        ),
        "triplet": (build("triplet"), o.triplet),
        "triplet squared": (build("triplet", preset="roth"), partial(o.triplet, squared=True)),
        "triplet cosine": (build("triplet", similarity="cosine", margin=0.1), partial(o.triplet, gap=0.1, cosine=True)),
        "triplet ball": (build("triplet", preset="cub"), partial(o.triplet, gap=0.0961, geometry="ball")),
        "triplet raw squared": (
            build("triplet", squared=True, normalise="none", margin=1.0),
            partial(o.triplet, gap=1.0, geometry="none", squared=True),
        ),
        "lifted_structure": (build("lifted_structure"), o.lifted_structure),
        "lifted_structure ball": (
            build("lifted_structure", margin=0.4, normalise="ball"),
            partial(o.lifted_structure, gap=0.4, geometry="ball"),
        ),
        "generalised_lifted": (build("generalised_lifted"), o.generalised_lifted),
        "generalised_lifted printed": (
            build("generalised_lifted", reduction="sum", norm_squared=True, margin=0.7, norm_weight=0.01),
            partial(o.generalised_lifted, gap=0.7, nu=0.01, squared=True, reduction="sum"),
        ),
        "generalised_lifted sphere": (
            build("generalised_lifted", normalise="sphere"),
            partial(o.generalised_lifted, geometry="sphere"),
        ),
        "generalised_lifted cosine": (build("generalised_lifted", similarity="cosine"), o.lifted_cosine),
        "generalised_lifted cosine mean": (
            build("generalised_lifted", similarity="cosine", margin=0.5, reduction="mean"),
            partial(o.lifted_cosine, lam=0.5, reduction="mean"),
        ),
        "lifted_star": (build("lifted_star"), o.lifted_star),
        "lifted_star 5 10": (build("lifted_star", alpha=5.0, beta=10.0), partial(o.lifted_star, al=5.0, be=10.0)),
        "n_pair": (build("n_pair"), o.n_pair),
        "n_pair sum": (build("n_pair", positives="sum"), partial(o.n_pair, over=lambda terms, _: sum(terms))),
        "n_pair squared norm": (
            build("n_pair", norm_squared=True, norm_weight=0.02),
            partial(o.n_pair, nu=0.02, squared=True),
        ),
        "n_pair lifted": (build("n_pair", reading="lifted"), o.n_pair_as_lifted),
        "n_pair lifted 0.3": (build("n_pair", reading="lifted", margin=0.3), partial(o.n_pair_as_lifted, lam=0.3)),
        "angular": (build("angular"), o.angular),
        "angular sum": (build("angular", positives="sum"), partial(o.angular, over=lambda terms, _: sum(terms))),
        "angular 36": (
            build("angular", alpha=36.0, angular_weight=1.0, norm_weight=0.0),
            partial(o.angular, degrees=36.0, lam=1.0, nu=0.0),
        ),
        "histogram": (build("histogram"), o.histogram),
        "histogram 11": (build("histogram", preset="sop"), partial(o.histogram, nodes=11)),
        "binomial_deviance": (build("binomial_deviance"), r.binomial),
        "binomial_deviance sum": (
            build("binomial_deviance", reduction="sum", alpha=3.0, beta=20.0, threshold=0.3),
            partial(r.binomial, al=3.0, be=20.0, lam=0.3, reduction="sum"),
        ),
        "multi_similarity": (build("multi_similarity"), r.multi_similarity),
        "multi_similarity printed": (
            build("multi_similarity", beta=50.0, threshold=1.0),
            partial(r.multi_similarity, be=50.0, lam=1.0),
        ),
        "multi_similarity weighting": (
            build("multi_similarity", mining_margin=None),
            partial(r.multi_similarity, eps=None),
        ),
        "multi_similarity mining": (
            build("multi_similarity", weighting=False),
            partial(r.multi_similarity, weighting=False),
        ),
        "multi_similarity cars": (
            build("multi_similarity", preset="cars"),
            partial(r.multi_similarity, al=14.35, be=75.83, lam=0.66, eps=None, geometry="ball"),
        ),
        "bin_lifted": (build("bin_lifted"), r.bin_lifted),
        "nca": (build("nca"), r.nca),
        "nca 0.2": (build("nca", temperature=0.2), partial(r.nca, temperature=0.2)),
        "snr": (build("snr"), r.snr),
        "snr 0.5": (build("snr", margin=0.5, sum_weight=0.1), partial(r.snr, gap=0.5, lam=0.1)),
        "fastap": (build("fastap"), r.fastap),
        "fastap 17": (build("fastap", preset="cub"), partial(r.fastap, bins=17)),
        "top_k_precision": (build("top_k_precision"), r.top_k),
        "top_k_precision 1": (build("top_k_precision", k=1, margin=0.3), partial(r.top_k, k=1, gap=0.3)),
        "top_k_precision 50": (build("top_k_precision", k=50), partial(r.top_k, k=50)),
        "supcon": (build("supcon"), r.supcon),
        "info_nce": (build("info_nce"), r.info_nce),
        "info_nce 0.5": (build("info_nce", temperature=0.5), partial(r.info_nce, temperature=0.5)),
        "circle": (build("circle"), r.circle),
        "circle 0.4 30": (build("circle", margin=0.4, scale=30.0), partial(r.circle, gap=0.4, scale=30.0)),
        "circle raw": (build("circle", scale=2.0, normalise="none"), partial(r.circle, scale=2.0, geometry="none")),
        "smooth_ap": (build("smooth_ap"), r.smooth_ap),
        "smooth_ap 0.1": (build("smooth_ap", temperature=0.1), partial(r.smooth_ap, temperature=0.1)),
    }


def further_cases():
    """The same for [math A24]."""
    f, build = further_oracles, losses.build
    return {
        "tuplet_margin": (build("tuplet_margin"), f.tuplet_margin),
        "tuplet_margin 0.6 10": (
            build("tuplet_margin", margin=0.6, scale=10.0),
            partial(f.tuplet_margin, slack=0.6, scale=10.0),
        ),
        "intra_pair_variance": (build("intra_pair_variance"), f.intra_pair_variance),
        "intra_pair_variance 0.2 0.4": (
            build("intra_pair_variance", positive_slack=0.2, negative_slack=0.4, normalise="none"),
            partial(f.intra_pair_variance, low=0.2, high=0.4, geometry="none"),
        ),
        "threshold_consistent_margin": (build("threshold_consistent_margin"), f.threshold_consistent_margin),
        "threshold_consistent_margin 0.4 -0.1": (
            build("threshold_consistent_margin", positive_margin=0.4, negative_margin=-0.1, positive_weight=2.0),
            partial(f.threshold_consistent_margin, above=0.4, below=-0.1, pull=2.0),
        ),
        # its scale is the exponential of a float32
        "siglip": (build("siglip"), partial(f.siglip, scale=math.exp(build("siglip").log_scale.item()))),
        "siglip 1 -2": (build("siglip", scale=1.0, bias=-2.0), partial(f.siglip, scale=1.0, bias=-2.0)),
        "ranked_list": (build("ranked_list"), f.ranked_list),
        "ranked_list 1 0.3": (
            build("ranked_list", boundary=1.0, margin=0.3, balance=0.3, positive_temperature=4.0, normalise="ball"),
            partial(f.ranked_list, al=1.0, gap=0.3, lam=0.3, t_pos=4.0, geometry="ball"),
        ),
        "pnp": (build("pnp"), f.pnp),
        **{
            f"pnp {variant}": (
                build("pnp", variant=variant, temperature=0.2, bound=3.0, power=2.0),
                partial(f.pnp, variant=variant, temperature=0.2),
            )
            for variant in ("Iu", "Ib", "Ds", "Dq")
        },
        "recall_at_k": (build("recall_at_k"), f.recall_at_k),
        "recall_at_k 2": (
            build("recall_at_k", k=2, temperature=0.1, k_temperature=0.5),
            partial(f.recall_at_k, ks=(2,), temperature=0.1, outer=0.5),
        ),
        "vicreg": (build("vicreg"), f.vicreg),
        "vicreg 3 9 2 sphere": (
            build("vicreg", invariance=3.0, variance=9.0, covariance=2.0, epsilon=0.1, normalise="sphere"),
            partial(f.vicreg, lam=3.0, mu=9.0, nu=2.0, eps=0.1, geometry="sphere"),
        ),
        "dynamic_soft_margin": (build("dynamic_soft_margin"), f.dynamic_soft_margin),
        "dynamic_soft_margin 9": (
            build("dynamic_soft_margin", nodes=9, normalise="ball"),
            partial(f.dynamic_soft_margin, nodes=9, geometry="ball"),
        ),
    }


PAIR_CASES = pair_cases() | further_cases()
UNEVEN = [4, 900, 4, 17, 900, 4, 17, 2, 900, 4]  # classes of 4, 3, 2 and 1


def random_rows(count, dim=4, seed=0):
    """Rows of lengths from 0.2 to 2: some inside the unit ball, some outside."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(count, dim, generator=generator, dtype=torch.float64)
    lengths = 0.2 + 1.8 * torch.rand(count, 1, generator=generator, dtype=torch.float64)
    return (rows / rows.norm(dim=1, keepdim=True) * lengths).requires_grad_()


def rectangle():
    """Seven anchors, nine candidates: some share ids with anchors, one anchor has no positive, one class no anchor."""
    z, c = random_rows(7, seed=1), random_rows(9, seed=2)
    labels, columns = [1, 1, 2, 3, 3, 8, 2], [1, 1, 2, 2, 3, 3, 3, 4, 8]
    ids, column_ids = list(range(7)), [0, 1, 100, 2, 3, 101, 102, 103, 5]
    with torch.no_grad():
        for place, number in enumerate(column_ids):
            if number < 7:
                c[place] = z[number]
    pairs = Pairs.across(*(torch.tensor(part) for part in (labels, columns, ids, column_ids)))
    return z, c, pairs, oracles.sides(labels, columns, ids, column_ids)


def assert_same(value, expected, leaves, tolerance=1e-9, gradients=True):
    """Equal values and equal gradients with respect to every leaf."""
    torch.testing.assert_close(value, expected, rtol=tolerance, atol=tolerance, check_dtype=False)
    if not gradients:
        return
    ours = torch.autograd.grad(value, leaves, allow_unused=True)
    theirs = torch.autograd.grad(expected, leaves, allow_unused=True)
    for leaf, mine, right in zip(leaves, ours, theirs, strict=True):
        zero = torch.zeros_like(leaf)
        mine, right = zero if mine is None else mine, zero if right is None else right
        torch.testing.assert_close(mine, right, rtol=tolerance, atol=tolerance)
