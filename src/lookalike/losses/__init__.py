"""Losses: `loss(embeddings, targets, candidates=None) -> scalar`, one per file, under the name of its paper.

Embeddings are raw; every loss applies its own geometry. `targets` are plain labels, Pairs, Triplets or Classes.
"""

from typing import Any

from torch import nn

from lookalike import catalog
from lookalike.losses.angular import Angular
from lookalike.losses.arcface import ArcFace
from lookalike.losses.bin_lifted import BinLifted
from lookalike.losses.binomial_deviance import BinomialDeviance
from lookalike.losses.circle import Circle
from lookalike.losses.contrastive import Contrastive
from lookalike.losses.cosface import CosFace
from lookalike.losses.cosine_contrastive import CosineContrastive
from lookalike.losses.fastap import FastAP
from lookalike.losses.generalised_lifted import GeneralisedLifted
from lookalike.losses.hierarchical_proxy import HierarchicalProxy
from lookalike.losses.histogram import Histogram
from lookalike.losses.info_nce import InfoNCE
from lookalike.losses.intra_pair_variance import IntraPairVariance
from lookalike.losses.lifted_star import LiftedStar
from lookalike.losses.lifted_structure import LiftedStructure
from lookalike.losses.margin import Margin
from lookalike.losses.margin_contrastive import MarginContrastive
from lookalike.losses.multi_similarity import MultiSimilarity
from lookalike.losses.n_pair import NPair
from lookalike.losses.nca import NCA
from lookalike.losses.normalised_softmax import NormalisedSoftmax
from lookalike.losses.proxy_anchor import ProxyAnchor
from lookalike.losses.proxy_nca import ProxyNCA
from lookalike.losses.proxy_nca_pp import ProxyNCAPP
from lookalike.losses.quadruplet import Quadruplet
from lookalike.losses.ranked_list import RankedList
from lookalike.losses.siglip import SigLIP
from lookalike.losses.smooth_ap import SmoothAP
from lookalike.losses.snr import SNR
from lookalike.losses.soft_triple import SoftTriple
from lookalike.losses.supcon import SupCon
from lookalike.losses.threshold_consistent_margin import ThresholdConsistentMargin
from lookalike.losses.top_k_precision import TopKPrecision
from lookalike.losses.triplet import Triplet
from lookalike.losses.tuplet_margin import TupletMargin

MEMBERS: dict[str, type[nn.Module]] = {
    "angular": Angular,
    "arcface": ArcFace,
    "bin_lifted": BinLifted,
    "binomial_deviance": BinomialDeviance,
    "circle": Circle,
    "contrastive": Contrastive,
    "cosface": CosFace,
    "cosine_contrastive": CosineContrastive,
    "fastap": FastAP,
    "generalised_lifted": GeneralisedLifted,
    "hierarchical_proxy": HierarchicalProxy,
    "histogram": Histogram,
    "info_nce": InfoNCE,
    "intra_pair_variance": IntraPairVariance,
    "lifted_star": LiftedStar,
    "lifted_structure": LiftedStructure,
    "margin": Margin,
    "margin_contrastive": MarginContrastive,
    "multi_similarity": MultiSimilarity,
    "n_pair": NPair,
    "nca": NCA,
    "normalised_softmax": NormalisedSoftmax,
    "proxy_anchor": ProxyAnchor,
    "proxy_nca": ProxyNCA,
    "proxy_nca_pp": ProxyNCAPP,
    "quadruplet": Quadruplet,
    "ranked_list": RankedList,
    "siglip": SigLIP,
    "smooth_ap": SmoothAP,
    "snr": SNR,
    "soft_triple": SoftTriple,
    "supcon": SupCon,
    "threshold_consistent_margin": ThresholdConsistentMargin,
    "top_k_precision": TopKPrecision,
    "triplet": Triplet,
    "tuplet_margin": TupletMargin,
}
for _loss in MEMBERS.values():
    catalog.show_settings(_loss)

__all__ = [
    "MEMBERS",
    "NCA",
    "SNR",
    "Angular",
    "ArcFace",
    "BinLifted",
    "BinomialDeviance",
    "Circle",
    "Contrastive",
    "CosFace",
    "CosineContrastive",
    "FastAP",
    "GeneralisedLifted",
    "HierarchicalProxy",
    "Histogram",
    "InfoNCE",
    "IntraPairVariance",
    "LiftedStar",
    "LiftedStructure",
    "Margin",
    "MarginContrastive",
    "MultiSimilarity",
    "NPair",
    "NormalisedSoftmax",
    "ProxyAnchor",
    "ProxyNCA",
    "ProxyNCAPP",
    "Quadruplet",
    "RankedList",
    "SigLIP",
    "SmoothAP",
    "SoftTriple",
    "SupCon",
    "ThresholdConsistentMargin",
    "TopKPrecision",
    "Triplet",
    "TupletMargin",
    "build",
    "names",
]


def names() -> list[str]:
    """The names of all losses."""
    return sorted(MEMBERS)


def build(name: str, preset: str | None = None, **settings: Any) -> nn.Module:
    """The loss called `name`; `classes` and `dim` are always accepted and reach the losses that need them.

    >>> build("multi_similarity", alpha=3, classes=100, dim=128).alpha
    3
    >>> build("multi_similarty")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    lookalike.errors.UserError: unknown loss 'multi_similarty': did you mean 'multi_similarity'? Possible: angular, ...
    """
    return catalog.build("loss", MEMBERS, name, settings, preset, facts=("classes", "dim"))
