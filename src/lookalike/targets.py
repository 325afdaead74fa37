"""What a loss works on: which candidates attract an anchor, which repel it.

Rows are anchors, columns candidates. Memory, proxies, other processes and a gallery are all the same thing: more
columns.
"""

from dataclasses import dataclass, replace
from typing import Literal, TypeGuard, overload

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor

from lookalike.choices import Listed, mask_of, places_of
from lookalike.errors import UserError, check
from lookalike.label_sets import LabelSets
from lookalike.labels import Labels, as_labels, joint_labels, joint_sets, several

Embeddings = Float[Tensor, "n d"]
Candidates = Float[Tensor, "m d"] | None  # None: the embeddings themselves
Similarities = Float[Tensor, "n m"]
Value = Float[Tensor, ""]


@dataclass(frozen=True)
class Pairs:
    """Two masks, anchors × candidates. A pair in neither mask plays no part; labels are there where known.

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
    def within(labels: Labels) -> "Pairs":
        """All pairs of a batch; a sample is not its own positive (removed by index, whatever the embeddings are).

        Samples with several labels are positives where they share one.

        >>> Pairs.within([{"red", "round"}, {"red"}, {"round"}]).positive.int()
        tensor([[0, 1, 1],
                [1, 0, 0],
                [1, 0, 0]], dtype=torch.int32)
        """
        if isinstance(labels, Tensor) and labels.dtype == torch.int64 and labels.dim() == 1:
            rows = labels  # as data loaders give them: nothing to read
        elif several(labels):
            (sets,) = joint_sets(labels)
            return Pairs.masked(sets.shared(sets) > 0, sets.opposes(sets))
        else:
            (rows,) = joint_labels(labels)
        same = rows[:, None] == rows
        return Pairs(same.clone().fill_diagonal_(False), ~same, rows, rows)

    @staticmethod
    def across(
        labels: Labels,
        candidate_labels: Labels,
        ids: Labels | None = None,
        candidate_ids: Labels | None = None,
    ) -> "Pairs":
        """All pairs of anchors with candidates. Equal ids are one and the same sample: that pair plays no part.

        >>> ids, memory_ids = torch.tensor([1]), torch.tensor([0, 1, 2])
        >>> pairs = Pairs.across(torch.tensor([5]), torch.tensor([5, 5, 6]), ids, memory_ids)
        >>> pairs.positive.tolist(), pairs.negative.tolist()
        ([[True, False, False]], [[False, False, True]])
        """
        pairs = _across(labels, candidate_labels)
        if ids is None and candidate_ids is None:
            return pairs
        if ids is None or candidate_ids is None:
            raise UserError("give both ids and candidate_ids, or neither")
        row_ids, column_ids = joint_labels(ids, candidate_ids, name="ids")
        rows, columns = pairs.positive.shape
        check(len(row_ids) == rows, f"{len(row_ids)} ids for {rows} labels")
        check(len(column_ids) == columns, f"{len(column_ids)} candidate_ids for {columns} candidate_labels")
        other = row_ids[:, None] != column_ids
        return replace(pairs, positive=pairs.positive & other, negative=pairs.negative & other)

    @staticmethod
    def masked(positive: Bool[Tensor, "n m"], negative: Bool[Tensor, "n m"] | None = None) -> "Pairs":
        """Pairs of a batch from masks; the diagonal plays no part. Without `negative` all other pairs are negatives.

        For anchors and candidates that are not the same samples, `Pairs(positive, negative)` takes masks as they are.
        """
        check(positive.dtype == torch.bool, f"the positive mask must be boolean, not {positive.dtype}")
        size = tuple(positive.shape)
        check(len(size) == 2 and size[0] == size[1], f"the masks of a batch are square, not {size}")
        negative = ~positive if negative is None else negative.clone()
        return Pairs(positive.clone().fill_diagonal_(False), negative.fill_diagonal_(False))

    @staticmethod
    def listed(positive: Listed, negative: Listed | None = None, *, rows: int, columns: int | None = None) -> "Pairs":
        """Pairs given one by one as (anchor, candidate). Without `negative` all other pairs are negatives.

        Without `columns` the pairs are those of a batch of `rows` samples: each counts in both directions.

        >>> Pairs.listed([(0, 1)], [(1, 2)], rows=3).negative.int()
        tensor([[0, 0, 0],
                [0, 0, 1],
                [0, 1, 0]], dtype=torch.int32)
        """
        masks = [mask_of(part, (rows, columns)) for part in (positive, negative) if part is not None]
        for mask in masks[1:]:
            check(not bool((masks[0] & mask).any()), "a pair is listed both as positive and as negative")
        if columns is None:
            return Pairs.masked(*masks)
        return Pairs(masks[0], ~masks[0] if negative is None else masks[1])

    @staticmethod
    def of_views(items: int, views: int = 2) -> "Pairs":
        """A batch of unlabelled items, all in their first view, then all in their second: the views of an item attract.

        >>> Pairs.of_views(2).positive.int()
        tensor([[0, 0, 1, 0],
                [0, 0, 0, 1],
                [1, 0, 0, 0],
                [0, 1, 0, 0]], dtype=torch.int32)
        """
        return Pairs.within(torch.arange(items).repeat(views))

    def slots(self) -> tuple[Integer[Tensor, "n p"], Bool[Tensor, "n p"]]:
        """The positives of every anchor as columns' indices, padded to the widest row, and which slots are filled.

        Reads that width on the host: for losses over all tuples, which are not compiled.

        >>> Pairs.within(torch.tensor([4, 4, 4, 9])).slots()[1].sum(1).tolist()
        [2, 2, 2, 0]
        """
        width = max(1, int(self.positive.sum(1).max())) if self.positive.numel() else 0
        filled, columns = self.positive.to(torch.float32).topk(width, dim=1)
        return columns, filled > 0

    def informative(self, similarities: Float[Tensor, "n m"], margin: float) -> "Pairs":
        """The pairs on the wrong side of, or within a margin of, the hardest pair of the other kind (see miners).

        >>> pairs = Pairs(torch.tensor([[True, False, False]]), torch.tensor([[False, True, True]]))
        >>> pairs.informative(torch.tensor([[0.5, 0.45, 0.1]]), margin=0.1).negative
        tensor([[False,  True, False]])
        """
        if not similarities.shape[1]:
            return self
        least_positive = torch.where(self.positive, similarities, torch.inf).amin(1, keepdim=True)
        most_negative = torch.where(self.negative, similarities, -torch.inf).amax(1, keepdim=True)
        return replace(
            self,
            positive=self.positive & (similarities < most_negative + margin),
            negative=self.negative & (similarities > least_positive - margin),
        )


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

    @staticmethod
    def of(pairs: Pairs, positive: Integer[Tensor, " n"], negative: Integer[Tensor, " n"]) -> "Triplets":
        """One triplet per anchor, valid where the anchor has a positive and a negative."""
        anchor = torch.arange(len(pairs.positive), device=pairs.positive.device)
        valid = pairs.positive.any(1) & pairs.negative.any(1)
        return Triplets(anchor, positive, negative, valid, pairs.candidate_labels)

    @staticmethod
    def listed(triplets: Listed, *, rows: int, columns: int | None = None) -> "Triplets":
        """Triplets given one by one as (anchor, positive, negative); the last two count candidates, if there are any.

        >>> Triplets.listed([(0, 2, 1)], rows=3).negative
        tensor([1])
        """
        places = places_of(triplets, (rows, columns or rows, columns or rows))
        anchor, positive, negative = places.unbind(1)
        return Triplets(anchor, positive, negative, torch.ones_like(anchor, dtype=torch.bool))


@dataclass(frozen=True)
class Quadruplets:
    """Triplets, each with a fourth sample of yet another class; `complete` is false where there is none."""

    triplets: Triplets
    other: Integer[Tensor, " t"]
    complete: Bool[Tensor, " t"]


@dataclass(frozen=True)
class Classes:
    """The class of every sample, for losses that learn a weight per class."""

    labels: Labels


def _across(labels: Labels, candidate_labels: Labels) -> Pairs:
    if several(labels, candidate_labels):
        sets, others = joint_sets(labels, candidate_labels)
        return Pairs(sets.shared(others) > 0, sets.opposes(others))
    rows, columns = joint_labels(labels, candidate_labels)
    same = rows[:, None] == columns
    return Pairs(same, ~same, rows, columns)


Targets = Labels | Pairs | Triplets | Quadruplets | Classes


def is_labels(targets: Targets) -> TypeGuard[Labels]:
    """Whether targets are plain labels, from which a loss or miner makes its own targets."""
    return not isinstance(targets, Pairs | Triplets | Quadruplets | Classes)


def check_embeddings(embeddings: Tensor, candidates: Tensor | None = None) -> None:
    """Shapes and dtypes of the vectors that a loss, miner or regulariser works on."""
    for name, vectors in (("embeddings", embeddings), ("candidates", candidates)):
        if vectors is None:
            continue
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
    targets: Targets, embeddings: Tensor, candidates: Tensor | None = None, *, or_triplets: Literal[True]
) -> Pairs | Triplets: ...
def as_pairs(
    targets: Targets, embeddings: Tensor, candidates: Tensor | None = None, *, or_triplets: bool = False
) -> Pairs | Triplets:
    """The pairs a loss works on, from pairs or plain labels, checked against the embeddings; or sampled triplets."""
    if or_triplets and isinstance(targets, Triplets):
        return as_triplets(targets, embeddings, candidates)
    if candidates is not None or embeddings.dim() != 2 or not embeddings.is_floating_point():
        check_embeddings(embeddings, candidates)
    if isinstance(targets, Triplets | Quadruplets | Classes):
        raise UserError(f"this loss takes labels or Pairs, not {type(targets).__name__}")
    if not isinstance(targets, Pairs):
        if candidates is not None:
            raise UserError(
                "labels alone do not say how candidates relate: give Pairs.across(labels, candidate_labels)"
            )
        labels = targets if isinstance(targets, Tensor) else _read(targets)
        targets = Pairs.within(labels.to(embeddings.device))
        if len(labels) != len(embeddings):
            raise _unequal(labels, embeddings)
    expected = (len(embeddings), len(embeddings if candidates is None else candidates))
    positive, negative = targets.positive, targets.negative
    if not (positive.shape == negative.shape == expected and positive.dtype == negative.dtype == torch.bool):
        raise _unfit(targets, expected)
    return targets


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
    if embeddings.dim() != 2 or not embeddings.is_floating_point():
        check_embeddings(embeddings)
    classes, dim = weights.shape[0], weights.shape[-1]
    if embeddings.shape[1] != dim:
        raise UserError(f"embeddings have {embeddings.shape[1]} dimensions, this loss was built with dim={dim}")
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
        raise _unequal(labels, embeddings)
    check_range(labels, classes)
    return labels.to(embeddings.device)


def _read(labels: Labels) -> Tensor | LabelSets:
    return joint_sets(labels)[0] if several(labels) else joint_labels(labels)[0]


def _unequal(labels: Tensor | LabelSets, embeddings: Tensor) -> UserError:
    return UserError(f"{len(labels)} labels for {len(embeddings)} embeddings: give one label each")


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
