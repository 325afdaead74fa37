"""A fitting miner and rate for every loss of the catalogue, as changes to the default recipe for small images.

Tuple losses get distance-weighted triplets (Revisiting Training Strategies); losses with class weights a rate of their
own for these, because their papers' factors belong to a base rate of 1e-5; losses on raw vectors are searched by angle
like all others.
"""

MINED = ["miner.name=distance_weighted"]
WEIGHTED = ["optimiser.loss_lr=1e-2"]

FITTING: dict[str, list[str]] = {
    "angular": [],
    "arcface": WEIGHTED,
    "bin_lifted": [],
    "binomial_deviance": [],
    "centroid_triplet": [],
    "circle": [],
    "contrastive": MINED,
    "cosface": WEIGHTED,
    "cosine_contrastive": ["optimiser.lr=5e-3"],
    "dynamic_soft_margin": [],
    "fastap": [],
    "generalised_lifted": [],
    "hierarchical_proxy": WEIGHTED,
    "histogram": [],
    "info_nce": [],
    "instance": WEIGHTED,
    "intra_pair_variance": [],
    "large_margin_softmax": [*WEIGHTED, "loss.annealing=5.0"],
    "lifted_star": [],
    "lifted_structure": [],
    "manifold": [*WEIGHTED, "loss.context_weight=0.1"],  # its context alone is content where all are alike
    "margin": [*MINED, "optimiser.loss_lr=1e-3"],
    "margin_contrastive": [],
    "multi_similarity": [],
    "n_pair": [],
    "nca": [],
    "normalised_softmax": WEIGHTED,
    "p2s_grad": WEIGHTED,
    "pnp": [],
    "proxy_anchor": WEIGHTED,
    "proxy_nca": WEIGHTED,
    "proxy_nca_pp": WEIGHTED,
    "quadruplet": MINED,
    "ranked_list": [],
    "recall_at_k": [],
    "siglip": [],
    "smooth_ap": [],
    "snr": MINED,
    "soft_triple": WEIGHTED,
    "sphereface": [*WEIGHTED, "loss.annealing=5.0"],
    "sub_center_arcface": WEIGHTED,
    "supcon": [],
    "threshold_consistent_margin": [],
    "top_k_precision": [],
    "triplet": MINED,
    "tuplet_margin": [],
    "vicreg": [],
}


def overrides(loss: str) -> list[str]:
    """What to change in the default recipe to train with this loss."""
    return [f"loss.name={loss}", *FITTING[loss]]
