"""Losses: `loss(embeddings, targets, candidates=None) -> scalar`, one per file, under the name of its paper.

`embeddings` are raw, n × d: every loss applies its own geometry, or the one that `normalise` names. `targets` are plain
labels, Pairs, Triplets or Classes. `candidates`, m × d, are what the columns of Pairs stand for, where that is not the
batch itself: a memory, the embeddings of another process.

`loss(…)` is `forward(embeddings, targets, candidates=None)`. A loss may also have

`of_similarities(similarities, targets)`: the equation alone. `similarities` are those of anchors and candidates, n × m;
`pairs` or `triplets` stand in the place of targets where nothing else will do. `lengths` are the squared lengths of
both, for losses of distances; None: all are 1.

`targets(labels, generator=None)`: draws what it works on from `labels`, by `generator` or by torch's own.

`parameter_groups(base_lr)`: groups for the optimiser of what it learns, where the network learns at the rate `base_lr`.

`epoch_started(epoch, generator=None)`: to be called with the number of each `epoch` that begins.
"""

from typing import Any

from torch import nn

from lookalike import catalog
from lookalike.losses.angular import Angular
from lookalike.losses.arcface import ArcFace
from lookalike.losses.bin_lifted import BinLifted
from lookalike.losses.binomial_deviance import BinomialDeviance
from lookalike.losses.centroid_triplet import CentroidTriplet
from lookalike.losses.circle import Circle
from lookalike.losses.contrastive import Contrastive
from lookalike.losses.cosface import CosFace
from lookalike.losses.cosine_contrastive import CosineContrastive
from lookalike.losses.dynamic_soft_margin import DynamicSoftMargin
from lookalike.losses.fastap import FastAP
from lookalike.losses.generalised_lifted import GeneralisedLifted
from lookalike.losses.hierarchical_proxy import HierarchicalProxy
from lookalike.losses.histogram import Histogram
from lookalike.losses.info_nce import InfoNCE
from lookalike.losses.instance import Instance
from lookalike.losses.intra_pair_variance import IntraPairVariance
from lookalike.losses.large_margin_softmax import LargeMarginSoftmax
from lookalike.losses.lifted_star import LiftedStar
from lookalike.losses.lifted_structure import LiftedStructure
from lookalike.losses.manifold import Manifold
from lookalike.losses.margin import Margin
from lookalike.losses.margin_contrastive import MarginContrastive
from lookalike.losses.multi_similarity import MultiSimilarity
from lookalike.losses.n_pair import NPair
from lookalike.losses.nca import NCA
from lookalike.losses.normalised_softmax import NormalisedSoftmax
from lookalike.losses.p2s_grad import P2SGrad
from lookalike.losses.pnp import PNP
from lookalike.losses.proxy_anchor import ProxyAnchor
from lookalike.losses.proxy_nca import ProxyNCA
from lookalike.losses.proxy_nca_pp import ProxyNCAPP
from lookalike.losses.quadruplet import Quadruplet
from lookalike.losses.ranked_list import RankedList
from lookalike.losses.recall_at_k import RecallAtK
from lookalike.losses.siglip import SigLIP
from lookalike.losses.smooth_ap import SmoothAP
from lookalike.losses.snr import SNR
from lookalike.losses.soft_triple import SoftTriple
from lookalike.losses.sphereface import SphereFace
from lookalike.losses.sub_center_arcface import SubCenterArcFace
from lookalike.losses.supcon import SupCon
from lookalike.losses.threshold_consistent_margin import ThresholdConsistentMargin
from lookalike.losses.top_k_precision import TopKPrecision
from lookalike.losses.triplet import Triplet
from lookalike.losses.tuplet_margin import TupletMargin
from lookalike.losses.vicreg import VICReg

MEMBERS: dict[str, type[nn.Module]] = {
    "angular": Angular,
    "arcface": ArcFace,
    "bin_lifted": BinLifted,
    "binomial_deviance": BinomialDeviance,
    "centroid_triplet": CentroidTriplet,
    "circle": Circle,
    "contrastive": Contrastive,
    "cosface": CosFace,
    "cosine_contrastive": CosineContrastive,
    "dynamic_soft_margin": DynamicSoftMargin,
    "fastap": FastAP,
    "generalised_lifted": GeneralisedLifted,
    "hierarchical_proxy": HierarchicalProxy,
    "histogram": Histogram,
    "info_nce": InfoNCE,
    "instance": Instance,
    "intra_pair_variance": IntraPairVariance,
    "large_margin_softmax": LargeMarginSoftmax,
    "lifted_star": LiftedStar,
    "lifted_structure": LiftedStructure,
    "manifold": Manifold,
    "margin": Margin,
    "margin_contrastive": MarginContrastive,
    "multi_similarity": MultiSimilarity,
    "n_pair": NPair,
    "nca": NCA,
    "normalised_softmax": NormalisedSoftmax,
    "p2s_grad": P2SGrad,
    "pnp": PNP,
    "proxy_anchor": ProxyAnchor,
    "proxy_nca": ProxyNCA,
    "proxy_nca_pp": ProxyNCAPP,
    "quadruplet": Quadruplet,
    "ranked_list": RankedList,
    "recall_at_k": RecallAtK,
    "siglip": SigLIP,
    "smooth_ap": SmoothAP,
    "snr": SNR,
    "soft_triple": SoftTriple,
    "sphereface": SphereFace,
    "sub_center_arcface": SubCenterArcFace,
    "supcon": SupCon,
    "threshold_consistent_margin": ThresholdConsistentMargin,
    "top_k_precision": TopKPrecision,
    "triplet": Triplet,
    "tuplet_margin": TupletMargin,
    "vicreg": VICReg,
}
for _loss in MEMBERS.values():
    catalog.show_settings(_loss)

__all__ = [
    "MEMBERS",
    "NCA",
    "PNP",
    "SNR",
    "Angular",
    "ArcFace",
    "BinLifted",
    "BinomialDeviance",
    "CentroidTriplet",
    "Circle",
    "Contrastive",
    "CosFace",
    "CosineContrastive",
    "DynamicSoftMargin",
    "FastAP",
    "GeneralisedLifted",
    "HierarchicalProxy",
    "Histogram",
    "InfoNCE",
    "Instance",
    "IntraPairVariance",
    "LargeMarginSoftmax",
    "LiftedStar",
    "LiftedStructure",
    "Manifold",
    "Margin",
    "MarginContrastive",
    "MultiSimilarity",
    "NPair",
    "NormalisedSoftmax",
    "P2SGrad",
    "ProxyAnchor",
    "ProxyNCA",
    "ProxyNCAPP",
    "Quadruplet",
    "RankedList",
    "RecallAtK",
    "SigLIP",
    "SmoothAP",
    "SoftTriple",
    "SphereFace",
    "SubCenterArcFace",
    "SupCon",
    "ThresholdConsistentMargin",
    "TopKPrecision",
    "Triplet",
    "TupletMargin",
    "VICReg",
    "build",
    "names",
]


def names() -> list[str]:
    """The names of all losses."""
    return sorted(MEMBERS)


def build(name: str, preset: str | None = None, **settings: Any) -> nn.Module:
    """The loss called `name`; `classes` and `dim` are always accepted and reach the losses that need them.

    `preset` names settings that a paper used, where the loss has some; settings given beside it override them.

    >>> build("multi_similarity", alpha=3, classes=100, dim=128).alpha
    3
    >>> build("multi_similarty")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    lookalike.errors.UserError: unknown loss 'multi_similarty': did you mean 'multi_similarity'? Possible: angular, ...
    """
    return catalog.build("loss", MEMBERS, name, settings, preset, facts=("classes", "dim"))
