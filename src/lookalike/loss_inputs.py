"""What losses, miners and regularisers are called with: checked, read from labels, in the form they compute with.

`value_of_pairs` and `value_of_distances` are what most losses do in `forward`: from these inputs to the equation. But
for the product in `geometry`, nothing on that path leaves this file: a reader follows a loss value through few
[architecture size].
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeGuard, overload, runtime_checkable

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor

from lookalike.errors import UserError, check
from lookalike.geometry import Geometry, compare, compare_with_squares
from lookalike.label_sets import Labels, LabelSets, joint_sets, several
from lookalike.labels import as_labels, joint_labels
from lookalike.targets import Candidates, Classes, Embeddings, Pairs, Quadruplets, Targets, Triplets, Value


def is_labels(targets: Targets) -> TypeGuard[Labels]:
    """Whether targets are plain labels, from which a loss or miner makes its own targets."""
    return not isinstance(targets, Pairs | Triplets | Quadruplets | Classes)


def check_embeddings(embeddings: Tensor, candidates: Tensor | None = None) -> None:
    """Shapes and dtypes of the vectors that a loss, miner or regulariser works on."""
    for name, vectors in (("embeddings", embeddings), ("candidates", candidates)):
        if vectors is None:
            continue
        check(isinstance(vectors, Tensor), f"{name} must be a torch tensor, not {type(vectors).__name__}")
        check(vectors.layout == torch.strided, f"{name} must be a dense tensor: call .to_dense() on them")
        check(vectors.dim() == 2, f"{name} must be a matrix n × d, not of shape {tuple(vectors.shape)}")
        check(vectors.is_floating_point(), f"{name} must be floating point, not {vectors.dtype}: call .float() on them")
    if candidates is not None:
        check(
            candidates.shape[1] == embeddings.shape[1],
            f"candidates have {candidates.shape[1]} dimensions, embeddings {embeddings.shape[1]}: they must agree",
        )


def taint(embeddings: Tensor, candidates: Tensor | None = None) -> Tensor:
    """0, or NaN if a vector holds a NaN or an infinity: losses add it, because masks and hinges would hide that.

    >>> taint(torch.tensor([[1.0, torch.nan]])), taint(torch.ones(2, 2))
    (tensor(nan), tensor(0.))
    """
    # x − x and not 0 · x, which a compiler takes for 0
    embeddings = embeddings.detach()
    total = (embeddings - embeddings).sum()
    if candidates is None:
        return total
    candidates = candidates.detach()
    return total + (candidates - candidates).sum()


@overload
def as_pairs(targets: Targets, embeddings: Tensor, candidates: Tensor | None = None) -> Pairs: ...
@overload
def as_pairs(
    targets: Targets, embeddings: Tensor, candidates: Tensor | None = None, *, or_triplets: bool
) -> Pairs | Triplets: ...
def as_pairs(
    targets: Targets, embeddings: Tensor, candidates: Tensor | None = None, *, or_triplets: bool = False
) -> Pairs | Triplets:
    """The pairs a loss works on, from pairs or plain labels, checked against the embeddings; or sampled triplets."""
    if or_triplets and isinstance(targets, Triplets):
        return as_triplets(targets, embeddings, candidates)
    dense = isinstance(embeddings, Tensor) and embeddings.layout == torch.strided
    if candidates is not None or not dense or embeddings.dim() != 2 or not embeddings.is_floating_point():
        check_embeddings(embeddings, candidates)
    if isinstance(targets, Triplets | Quadruplets | Classes):
        raise UserError(f"this loss takes labels or Pairs, not {type(targets).__name__}")
    if isinstance(targets, Pairs):
        pairs = targets
    elif candidates is not None:
        raise UserError("labels alone do not say how candidates relate: give Pairs.across(labels, candidate_labels)")
    elif isinstance(targets, Tensor) and targets.dtype == torch.int64 and targets.dim() == 1:
        labels = targets.to(embeddings.device)
        same = labels[:, None] == labels
        pairs = Pairs(same.clone().fill_diagonal_(False), ~same, labels, labels)  # what Pairs.within makes
    else:
        pairs = Pairs.within(_read(targets).to(embeddings.device))
    expected = (len(embeddings), len(embeddings if candidates is None else candidates))
    positive, negative = pairs.positive, pairs.negative
    if not (positive.shape == negative.shape == expected and positive.dtype == negative.dtype == torch.bool):
        raise _unfit(pairs, expected) if isinstance(targets, Pairs) else _unequal(len(positive), embeddings)
    return pairs


@runtime_checkable
class PairLoss(Protocol):
    """A loss that is an equation of similarities in its geometry."""

    normalise: Geometry

    @property
    def of_similarities(self) -> Callable[..., Value]: ...


def value_of_pairs(loss: PairLoss, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
    """The loss of pairs: one product of embeddings with candidates, then the equation, `of_similarities`."""
    pairs = as_pairs(targets, embeddings, candidates)
    similarities = compare(embeddings, candidates, loss.normalise)
    return loss.of_similarities(similarities, pairs) + taint(embeddings, candidates)


def value_of_distances(
    loss: PairLoss, embeddings: Embeddings, targets: Targets, candidates: Candidates = None, or_triplets: bool = False
) -> Value:
    """The same by distances: the equation also takes the squared lengths of both sides; or sampled triplets."""
    targets = as_pairs(targets, embeddings, candidates, or_triplets=or_triplets)
    similarities, lengths = compare_with_squares(embeddings, candidates, loss.normalise)
    return loss.of_similarities(similarities, targets, lengths) + taint(embeddings, candidates)


def slots_of_positives(pairs: Pairs) -> tuple[Integer[Tensor, "n p"], Bool[Tensor, "n p"]]:
    """The positives of every anchor as columns' indices, padded to the widest row, and which slots are filled.

    Reads that width on the host: for losses over all tuples, which are not compiled.

    >>> slots_of_positives(Pairs.within(torch.tensor([4, 4, 4, 9])))[1].sum(1).tolist()
    [2, 2, 2, 0]
    """
    width = max(1, int(pairs.positive.sum(1).max())) if pairs.positive.numel() else 0
    filled, columns = pairs.positive.to(torch.float32).topk(width, dim=1)
    return columns, filled > 0


def informative(pairs: Pairs, similarities: Float[Tensor, "n m"], margin: float) -> Pairs:
    """The pairs on the wrong side of, or within a margin of, the hardest pair of the other kind (see miners).

    >>> pairs = Pairs(torch.tensor([[True, False, False]]), torch.tensor([[False, True, True]]))
    >>> informative(pairs, torch.tensor([[0.5, 0.45, 0.1]]), margin=0.1).negative
    tensor([[False,  True, False]])
    """
    if not similarities.shape[1]:
        return pairs
    least_positive = torch.where(pairs.positive, similarities, torch.inf).amin(1, keepdim=True)
    most_negative = torch.where(pairs.negative, similarities, -torch.inf).amax(1, keepdim=True)
    return replace(
        pairs,
        positive=pairs.positive & (similarities < most_negative + margin),
        negative=pairs.negative & (similarities > least_positive - margin),
    )


def as_triplets(targets: Triplets, embeddings: Tensor, candidates: Tensor | None = None) -> Triplets:
    """Sampled triplets, checked; none where there is no column to point at."""
    check_embeddings(embeddings, candidates)
    anchor, positive, negative, valid = targets.anchor, targets.positive, targets.negative, targets.valid
    sizes = {len(anchor), len(positive), len(negative), len(valid)}
    check(len(sizes) == 1, f"the four parts of Triplets must be equally long, not {sorted(sizes)}")
    if len(embeddings if candidates is None else candidates):
        return targets
    return Triplets(anchor[:0], positive[:0], negative[:0], valid[:0], targets.labels)


def as_classes(targets: Targets, embeddings: Tensor, weights: Tensor) -> Tensor:
    """The class of every sample, from plain labels or Classes; `weights` are the loss's own: classes × … × dim."""
    check_dim(embeddings, weights)
    if isinstance(targets, Pairs | Triplets | Quadruplets):
        raise UserError(f"this loss takes labels or Classes, not {type(targets).__name__}")
    labels = targets.labels if isinstance(targets, Classes) else targets
    if not isinstance(labels, Tensor) and several(labels):
        raise UserError(
            "this loss learns weights per class and takes one label per sample, not several and not none: choose a "
            "loss of pairs such as supcon"
        )
    if not (isinstance(labels, Tensor) and labels.dtype == torch.int64 and labels.dim() == 1):
        labels = as_labels(labels)
    if len(labels) != len(embeddings):
        raise _unequal(len(labels), embeddings)
    check_range(labels, len(weights))
    return labels.to(embeddings.device)


def check_dim(embeddings: Tensor, weights: Tensor) -> None:
    """Embeddings that a loss compares with its own `weights`: a matrix of their dimension."""
    dense = isinstance(embeddings, Tensor) and embeddings.layout == torch.strided
    if not dense or embeddings.dim() != 2 or not embeddings.is_floating_point():
        check_embeddings(embeddings)
    dim = weights.shape[-1]
    if embeddings.shape[1] != dim:
        raise UserError(f"embeddings have {embeddings.shape[1]} dimensions, this loss was built with dim={dim}")


def _read(labels: Labels) -> Tensor | LabelSets:
    if isinstance(labels, Tensor):
        return labels
    return joint_sets(labels)[0] if several(labels) else joint_labels(labels)[0]


def _unequal(labels: int, embeddings: Tensor) -> UserError:
    return UserError(f"{labels} labels for {len(embeddings)} embeddings: give one label each")


def _unfit(pairs: Pairs, expected: tuple[int, int]) -> UserError:
    right = pairs.positive.shape == expected and pairs.positive.dtype == torch.bool
    name, mask = ("negative", pairs.negative) if right else ("positive", pairs.positive)
    if mask.shape != expected:
        return UserError(f"the {name} mask is {tuple(mask.shape)}, anchors × candidates are {expected}")
    return UserError(f"the {name} mask must be boolean, not {mask.dtype}")


def check_range(labels: Tensor, classes: int) -> None:
    """Labels must lie in 0 … classes − 1. Reads them on the host, so not while compiling."""
    if torch.compiler.is_compiling() or not len(labels):
        return
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise UserError(f"labels run from {low} to {high}, this loss knows the classes 0 to {classes - 1}")
