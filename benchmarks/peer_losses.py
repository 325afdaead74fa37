"""What pytorch-metric-learning 2.9.0 offers for the same equation, built for a number of classes and a dimension.

SmoothAP is timed although its value is wrong at these batches; NPairs is left out, it computes something else, and
ContrastiveLoss averages active pairs: that is our margin_contrastive.
"""

from collections.abc import Callable
from typing import Any

import torch

Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _plain(name: str, **settings: Any) -> Callable[[int, int], Step]:
    def make(_classes: int, _dim: int) -> Step:
        from pytorch_metric_learning import losses

        return getattr(losses, name)(**settings)  # type: ignore[no-any-return]

    return make


def _with_classes(name: str) -> Callable[[int, int], Step]:
    def make(classes: int, dim: int) -> Step:
        from pytorch_metric_learning import losses

        return getattr(losses, name)(num_classes=classes, embedding_size=dim)  # type: ignore[no-any-return]

    return make


def _mined(name: str, miner: str, **settings: Any) -> Callable[[int, int], Step]:
    def make(_classes: int, _dim: int) -> Step:
        from pytorch_metric_learning import losses, miners

        loss, mine = getattr(losses, name)(**settings), getattr(miners, miner)()
        return lambda embeddings, labels: loss(embeddings, labels, mine(embeddings, labels))

    return make


def _snr(_classes: int, _dim: int) -> Step:
    from pytorch_metric_learning import distances, losses

    return losses.TripletMarginLoss(margin=0.2, distance=distances.SNRDistance())  # type: ignore[no-any-return]


def _p2s_grad(classes: int, dim: int) -> Step:
    from pytorch_metric_learning import losses

    return losses.P2SGradLoss(descriptors_dim=dim, num_classes=classes)  # type: ignore[no-any-return]


def _manifold(classes: int, dim: int) -> Step:
    from pytorch_metric_learning import losses

    loss = losses.ManifoldLoss(dim, K=min(50, classes))
    return lambda embeddings, labels: loss(embeddings, indices_tuple=labels % loss.K)


PEERS: dict[str, Callable[[int, int], Step]] = {
    "angular": _plain("AngularLoss"),
    "arcface": _with_classes("ArcFaceLoss"),
    "circle": _plain("CircleLoss"),
    "cosface": _with_classes("CosFaceLoss"),
    "fastap": _plain("FastAPLoss"),
    "generalised_lifted": _plain("GeneralizedLiftedStructureLoss"),
    "histogram": _plain("HistogramLoss", n_bins=64),
    "info_nce": _plain("NTXentLoss", temperature=0.1),
    "intra_pair_variance": _plain("IntraPairVarianceLoss"),
    "large_margin_softmax": _with_classes("LargeMarginSoftmaxLoss"),
    "lifted_structure": _plain("LiftedStructureLoss"),
    "manifold": _manifold,
    "margin": _mined("MarginLoss", "DistanceWeightedMiner"),
    "margin_contrastive": _plain("ContrastiveLoss"),
    "multi_similarity": _mined("MultiSimilarityLoss", "MultiSimilarityMiner", alpha=2, beta=40, base=0.5),
    "nca": _plain("NCALoss"),
    "normalised_softmax": _with_classes("NormalizedSoftmaxLoss"),
    "p2s_grad": _p2s_grad,
    "pnp": _plain("PNPLoss"),
    "proxy_anchor": _with_classes("ProxyAnchorLoss"),
    "proxy_nca": _with_classes("ProxyNCALoss"),
    "ranked_list": _plain("RankedListLoss", margin=0.4, Tn=10),
    "smooth_ap": _plain("SmoothAPLoss"),
    "snr": _snr,
    "soft_triple": _with_classes("SoftTripleLoss"),
    "sphereface": _with_classes("SphereFaceLoss"),
    "sub_center_arcface": _with_classes("SubCenterArcFaceLoss"),
    "supcon": _plain("SupConLoss"),
    "threshold_consistent_margin": _plain("ThresholdConsistentMarginLoss"),
    "triplet": _plain("TripletMarginLoss", margin=0.2),
    "tuplet_margin": _plain("TupletMarginLoss"),
}
