"""Losses: `loss(embeddings, targets, candidates=None) -> scalar`, one per file, under the name of its paper.

`embeddings` are raw, n × d: every loss applies its own geometry, or the one that `normalise` names. `targets` are plain
labels, Pairs, Triplets or Classes. `candidates`, m × d, are what the columns of Pairs stand for, where that is not the
batch itself: a memory, the embeddings of another process.

`loss(…)` is `forward(embeddings, targets, candidates=None)`. A loss may also have

`of_similarities(similarities, targets)`: the equation alone. `similarities` are those of anchors and candidates, n × m;
`pairs` or `triplets` replace targets where nothing else will do. `lengths` are the squared lengths of
both, for losses of distances; None: all are 1.

`targets(labels, generator=None)`: draws what it works on from `labels`, by `generator` or by torch's own.

`parameter_groups(base_lr)`: groups for the optimiser of what it learns, where the network learns at the rate `base_lr`.

`logits(embeddings)`: how well every class fits every sample, n × classes, before any margin; where a loss has weights
per class.

`epoch_started(epoch, generator=None)`: to be called with the number of each `epoch` that begins.
"""

from typing import Any

from torch import nn

from lookalike import catalog
from lookalike.losses.angular import Angular as Angular
from lookalike.losses.arcface import ArcFace as ArcFace
from lookalike.losses.bin_lifted import BinLifted as BinLifted
from lookalike.losses.binomial_deviance import BinomialDeviance as BinomialDeviance
from lookalike.losses.centroid_triplet import CentroidTriplet as CentroidTriplet
from lookalike.losses.circle import Circle as Circle
from lookalike.losses.contrastive import Contrastive as Contrastive
from lookalike.losses.cosface import CosFace as CosFace
from lookalike.losses.cosine_contrastive import CosineContrastive as CosineContrastive
from lookalike.losses.dynamic_soft_margin import DynamicSoftMargin as DynamicSoftMargin
from lookalike.losses.fastap import FastAP as FastAP
from lookalike.losses.generalised_lifted import GeneralisedLifted as GeneralisedLifted
from lookalike.losses.hierarchical_proxy import HierarchicalProxy as HierarchicalProxy
from lookalike.losses.histogram import Histogram as Histogram
from lookalike.losses.info_nce import InfoNCE as InfoNCE
from lookalike.losses.instance import Instance as Instance
from lookalike.losses.intra_pair_variance import IntraPairVariance as IntraPairVariance
from lookalike.losses.large_margin_softmax import LargeMarginSoftmax as LargeMarginSoftmax
from lookalike.losses.lifted_star import LiftedStar as LiftedStar
from lookalike.losses.lifted_structure import LiftedStructure as LiftedStructure
from lookalike.losses.manifold import Manifold as Manifold
from lookalike.losses.margin import Margin as Margin
from lookalike.losses.margin_contrastive import MarginContrastive as MarginContrastive
from lookalike.losses.multi_similarity import MultiSimilarity as MultiSimilarity
from lookalike.losses.n_pair import NPair as NPair
from lookalike.losses.nca import NCA as NCA
from lookalike.losses.normalised_softmax import NormalisedSoftmax as NormalisedSoftmax
from lookalike.losses.p2s_grad import P2SGrad as P2SGrad
from lookalike.losses.pnp import PNP as PNP
from lookalike.losses.proxy_anchor import ProxyAnchor as ProxyAnchor
from lookalike.losses.proxy_nca import ProxyNCA as ProxyNCA
from lookalike.losses.proxy_nca_pp import ProxyNCAPP as ProxyNCAPP
from lookalike.losses.quadruplet import Quadruplet as Quadruplet
from lookalike.losses.ranked_list import RankedList as RankedList
from lookalike.losses.recall_at_k import RecallAtK as RecallAtK
from lookalike.losses.siglip import SigLIP as SigLIP
from lookalike.losses.smooth_ap import SmoothAP as SmoothAP
from lookalike.losses.snr import SNR as SNR
from lookalike.losses.soft_triple import SoftTriple as SoftTriple
from lookalike.losses.sphereface import SphereFace as SphereFace
from lookalike.losses.sub_center_arcface import SubCenterArcFace as SubCenterArcFace
from lookalike.losses.supcon import SupCon as SupCon
from lookalike.losses.threshold_consistent_margin import ThresholdConsistentMargin as ThresholdConsistentMargin
from lookalike.losses.top_k_precision import TopKPrecision as TopKPrecision
from lookalike.losses.triplet import Triplet as Triplet
from lookalike.losses.tuplet_margin import TupletMargin as TupletMargin
from lookalike.losses.unreduced import per_anchor as per_anchor
from lookalike.losses.unreduced import per_pair as per_pair
from lookalike.losses.vicreg import VICReg as VICReg

MEMBERS: dict[str, type[nn.Module]] = catalog.members(globals())

__all__ = sorted({"MEMBERS", "build", "names", "per_anchor", "per_pair", *(kind.__name__ for kind in MEMBERS.values())})


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
