"""What a loss is asked to do with a batch: which candidates attract an anchor, which repel it.

Rows are anchors, columns candidates. Memory, proxies, other processes and a gallery are all the same thing: more
columns.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Integer
from torch import Tensor

from lookalike.errors import UserError, check
from lookalike.geometry import check_embeddings


@dataclass(frozen=True)
class Pairs:
    """Two masks, anchors × candidates. A pair in neither mask plays no part; the classes of both are kept where known.

    >>> Pairs.within(torch.tensor([7, 7, 9])).positive.int()
    tensor([[0, 1, 0],
            [1, 0, 0],
            [0, 0, 0]], dtype=torch.int32)
    """

    positive: Bool[Tensor, "n m"]
    negative: Bool[Tensor, "n m"]
    labels: Integer[Tensor, " n"] | None = None
    candidate_labels: Integer[Tensor, " m"] | None = None

    @staticmethod
    def within(labels: Integer[Tensor, " n"]) -> "Pairs":
        """All pairs of a batch; a sample is not its own positive (removed by index, whatever the embeddings are)."""
        labels = as_labels(labels)
        same = labels[:, None] == labels
        return Pairs(same.clone().fill_diagonal_(False), ~same, labels, labels)

    @staticmethod
    def across(
        labels: Integer[Tensor, " n"],
        candidate_labels: Integer[Tensor, " m"],
        ids: Integer[Tensor, " n"] | None = None,
        candidate_ids: Integer[Tensor, " m"] | None = None,
    ) -> "Pairs":
        """All pairs of anchors with candidates. Equal ids are one and the same sample: that pair plays no part.

        >>> ids, memory_ids = torch.tensor([1]), torch.tensor([0, 1, 2])
        >>> pairs = Pairs.across(torch.tensor([5]), torch.tensor([5, 5, 6]), ids, memory_ids)
        >>> pairs.positive.tolist(), pairs.negative.tolist()
        ([[True, False, False]], [[False, False, True]])
        """
        labels, candidate_labels = as_labels(labels), as_labels(candidate_labels)
        same = labels[:, None] == candidate_labels
        if ids is None and candidate_ids is None:
            return Pairs(same, ~same, labels, candidate_labels)
        if ids is None or candidate_ids is None:
            raise UserError("give both ids and candidate_ids, or neither")
        check(len(ids) == len(labels), f"{len(ids)} ids for {len(labels)} labels")
        check(
            len(candidate_ids) == len(candidate_labels),
            f"{len(candidate_ids)} candidate_ids for {len(candidate_labels)} candidate_labels",
        )
        other = ids[:, None] != candidate_ids
        return Pairs(same & other, ~same & other, labels, candidate_labels)

    def slots(self) -> tuple[Integer[Tensor, "n p"], Bool[Tensor, "n p"]]:
        """The positives of every anchor as columns' indices, padded to the widest row, and which slots are filled.

        Reads that width on the host: for losses over all tuples, which are not compiled.

        >>> Pairs.within(torch.tensor([4, 4, 4, 9])).slots()[1].sum(1).tolist()
        [2, 2, 2, 0]
        """
        width = max(1, int(self.positive.sum(1).max())) if self.positive.numel() else 0
        filled, columns = self.positive.to(torch.float32).topk(width, dim=1)
        return columns, filled > 0


@dataclass(frozen=True)
class Triplets:
    """One (anchor, positive, negative) per entry, as indices; an entry whose `valid` is false plays no part.

    `anchor` counts rows, `positive` and `negative` count columns; `labels` are the columns' classes, if known.
    """

    anchor: Integer[Tensor, " t"]
    positive: Integer[Tensor, " t"]
    negative: Integer[Tensor, " t"]
    valid: Bool[Tensor, " t"]
    labels: Integer[Tensor, " m"] | None = None


@dataclass(frozen=True)
class Quadruplets:
    """Triplets, each with a fourth sample of yet another class; `complete` is false where there is none."""

    triplets: Triplets
    other: Integer[Tensor, " t"]
    complete: Bool[Tensor, " t"]


@dataclass(frozen=True)
class Classes:
    """The class of every sample, for losses that learn a weight per class."""

    labels: Integer[Tensor, " n"]


def pick(choices: Bool[Tensor, "n m"], generator: torch.Generator | None = None) -> Integer[Tensor, " n"]:
    """One of the true columns of every row, uniformly (0 where there is none); None: torch's default generator.

    >>> pick(torch.tensor([[False, True, False], [False, False, True]]))
    tensor([1, 2])
    """
    if not choices.shape[1]:
        return torch.zeros(len(choices), dtype=torch.int64, device=choices.device)
    draws = torch.rand(choices.shape, generator=generator, device=choices.device)
    return torch.where(choices, draws, -1.0).argmax(1)


Targets = Tensor | Pairs | Triplets | Quadruplets | Classes


def as_labels(labels: Tensor) -> Tensor:
    """Labels as int64: compared as integers, so that ids above 2^24 stay apart."""
    check(isinstance(labels, Tensor), f"labels must be a tensor, not {type(labels).__name__}")
    check(labels.dim() == 1, f"labels must be a vector with one class per sample, not of shape {tuple(labels.shape)}")
    whole = not (labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool)
    check(whole, f"labels must be integers, not {labels.dtype}: number the classes and call .long() on them")
    return labels.to(torch.int64)


def _check_length(labels: Tensor, embeddings: Tensor) -> None:
    check(len(labels) == len(embeddings), f"{len(labels)} labels for {len(embeddings)} embeddings: give one label each")


def as_pairs(targets: Targets, embeddings: Tensor, candidates: Tensor | None = None) -> Pairs:
    """The pairs a loss works on, from pairs or plain labels, checked against the embeddings."""
    check_embeddings(embeddings, candidates)
    if isinstance(targets, Tensor):
        check(
            candidates is None,
            "labels alone do not say how candidates relate: give Pairs.across(labels, candidate_labels)",
        )
        targets = Pairs.within(targets)
        _check_length(targets.positive, embeddings)
    if not isinstance(targets, Pairs):
        raise UserError(f"this loss takes labels or Pairs, not {type(targets).__name__}")
    expected = (len(embeddings), len(embeddings if candidates is None else candidates))
    for name, mask in (("positive", targets.positive), ("negative", targets.negative)):
        check(
            tuple(mask.shape) == expected,
            f"the {name} mask is {tuple(mask.shape)}, anchors × candidates are {expected}",
        )
        check(mask.dtype == torch.bool, f"the {name} mask must be boolean, not {mask.dtype}")
    return targets


def as_pairs_or_triplets(targets: Targets, embeddings: Tensor, candidates: Tensor | None = None) -> Pairs | Triplets:
    """Like `as_pairs`, for losses that also take sampled triplets."""
    if not isinstance(targets, Triplets):
        return as_pairs(targets, embeddings, candidates)
    check_embeddings(embeddings, candidates)
    sizes = {len(part) for part in (targets.anchor, targets.positive, targets.negative, targets.valid)}
    check(len(sizes) == 1, f"the four parts of Triplets must be equally long, not {sorted(sizes)}")
    return targets


def as_classes(targets: Targets, embeddings: Tensor, weights: Tensor) -> Tensor:
    """The class of every sample, from plain labels or Classes; `weights` are the loss's own: classes × … × dim."""
    check_embeddings(embeddings)
    classes, dim = weights.shape[0], weights.shape[-1]
    check(
        embeddings.shape[1] == dim,
        f"embeddings have {embeddings.shape[1]} dimensions, this loss was built with dim={dim}",
    )
    if isinstance(targets, Classes):
        targets = targets.labels
    if not isinstance(targets, Tensor):
        raise UserError(f"this loss takes labels or Classes, not {type(targets).__name__}")
    labels = as_labels(targets)
    _check_length(labels, embeddings)
    check_range(labels, classes)
    return labels


def check_range(labels: Tensor, classes: int) -> None:
    """Labels must lie in 0 … classes − 1. Reads them on the host, so not while compiling."""
    if torch.compiler.is_compiling() or not len(labels):
        return
    low, high = int(labels.min()), int(labels.max())
    check(
        low >= 0 and high < classes, f"labels run from {low} to {high}, this loss knows the classes 0 to {classes - 1}"
    )
