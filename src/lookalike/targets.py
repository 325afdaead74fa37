"""What a loss works on: which candidates attract an anchor, which repel it.

Rows are anchors, columns candidates. Memory, proxies, other processes and a gallery are all the same thing: more
columns.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor

from lookalike.choices import Listed, mask_of, places_of
from lookalike.errors import UserError, check
from lookalike.label_sets import Labels, joint_sets, several
from lookalike.labels import joint_labels

Embeddings = Float[Tensor, "n d"]
Candidates = Float[Tensor, "m d"] | None  # None: the embeddings themselves
Similarities = Float[Tensor, "n m"]
Logits = Float[Tensor, "n classes"]
Value = Float[Tensor, ""]


@dataclass(frozen=True)
class Pairs:
    """Two masks, anchors × candidates. A pair in neither mask plays no part.

    positive: which candidates attract an anchor.
    negative: which candidates repel it.
    labels: the classes of the anchors, where known.
    candidate_labels: the classes of the candidates, where known.

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
        """All pairs of a batch with these `labels`; a sample is not its own positive (removed by index, not by value).

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
        labels: Labels, candidate_labels: Labels, ids: Labels | None = None, candidate_ids: Labels | None = None
    ) -> "Pairs":
        """All pairs of anchors with candidates, by `labels` and `candidate_labels`.

        Where `ids` equals `candidate_ids` it is one and the same sample: that pair plays no part.

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
        """Pairs of a batch from masks; the diagonal plays no part. Without `negative`, all that are not `positive` are.

        For anchors and candidates that are not the same samples, `Pairs(positive, negative)` takes masks as they are.
        """
        check(positive.dtype == torch.bool, f"the positive mask must be boolean, not {positive.dtype}")
        size = tuple(positive.shape)
        check(len(size) == 2 and size[0] == size[1], f"the masks of a batch are square, not {size}")
        negative = ~positive if negative is None else negative.clone()
        return Pairs(positive.clone().fill_diagonal_(False), negative.fill_diagonal_(False))

    @staticmethod
    def listed(positive: Listed, negative: Listed | None = None, *, rows: int, columns: int | None = None) -> "Pairs":
        """`positive` pairs given one by one as (anchor, candidate). Without `negative` all other pairs are negatives.

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
        """A batch of unlabelled `items`, all in their first view, then all in their second, up to `views`.

        The views of an item attract each other.

        >>> Pairs.of_views(2).positive.int()
        tensor([[0, 0, 1, 0],
                [0, 0, 0, 1],
                [1, 0, 0, 0],
                [0, 1, 0, 0]], dtype=torch.int32)
        """
        return Pairs.within(torch.arange(items).repeat(views))


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
        """One triplet per anchor of `pairs`, valid where it has a positive and a negative.

        `positive` and `negative` are the columns chosen for each anchor.
        """
        anchor = torch.arange(len(pairs.positive), device=pairs.positive.device)
        valid = pairs.positive.any(1) & pairs.negative.any(1)
        return Triplets(anchor, positive, negative, valid, pairs.candidate_labels)

    @staticmethod
    def listed(triplets: Listed, *, rows: int, columns: int | None = None) -> "Triplets":
        """`triplets` given one by one as (anchor, positive, negative), of a batch of `rows` samples.

        With `columns`, positive and negative are indices into that many candidates instead.

        >>> Triplets.listed([(0, 2, 1)], rows=3).negative
        tensor([1])
        """
        places = places_of(triplets, (rows, columns or rows, columns or rows))
        anchor, positive, negative = places.unbind(1)
        return Triplets(anchor, positive, negative, torch.ones_like(anchor, dtype=torch.bool))


@dataclass(frozen=True)
class Quadruplets:
    """`triplets`, each with an `other` sample of yet another class; `complete` is false where there is none."""

    triplets: Triplets
    other: Integer[Tensor, " t"]
    complete: Bool[Tensor, " t"]


@dataclass(frozen=True)
class Classes:
    """The class of every sample (`labels`), for losses that learn a weight per class."""

    labels: Labels


def _across(labels: Labels, candidate_labels: Labels) -> Pairs:
    if several(labels, candidate_labels):
        sets, others = joint_sets(labels, candidate_labels)
        return Pairs(sets.shared(others) > 0, sets.opposes(others))
    rows, columns = joint_labels(labels, candidate_labels)
    same = rows[:, None] == columns
    return Pairs(same, ~same, rows, columns)


Targets = Labels | Pairs | Triplets | Quadruplets | Classes
