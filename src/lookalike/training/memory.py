"""Wang, Zhang, Huang, Scott: Cross-Batch Memory for Embedding Learning, CVPR 2020 [math A19].

A ring of past embeddings serves as more candidates for any pair loss. The current batch is put in first, so a sample
meets its own copy there; ids tell the two apart, and that pair does not count.

Departs from the released code: a plain modulo ring (that one overwrites the last slots on overflow and takes label 0
for an empty slot), and self pairs are removed by id, not by similarity. The whole state is in `state_dict`.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor, nn

from lookalike.errors import check
from lookalike.label_sets import LabelSets
from lookalike.labels import as_labels
from lookalike.targets import Pairs

Meaning = Callable[[Tensor], Tensor | LabelSets]
EMPTY = -1  # id of a slot never filled


class CrossBatchMemory(nn.Module):
    """The last `capacity` embeddings of `dim` dimensions, with their labels.

    >>> memory = CrossBatchMemory(capacity=4, dim=2)
    >>> ids = memory.add(torch.eye(2), torch.tensor([0, 1]))
    >>> memory.pairs(torch.tensor([0, 1]), ids).negative.int()
    tensor([[0, 1, 0, 0],
            [1, 0, 0, 0]], dtype=torch.int32)
    """

    embeddings: Tensor
    labels: Tensor
    ids: Tensor
    added: Tensor

    def __init__(self, capacity: int, dim: int) -> None:
        super().__init__()
        check(capacity >= 1 and dim >= 1, f"capacity and dim must be at least 1, not {capacity} and {dim}")
        self.register_buffer("embeddings", torch.zeros(capacity, dim))
        self.register_buffer("labels", torch.zeros(capacity, dtype=torch.int64))
        self.register_buffer("ids", torch.full((capacity,), EMPTY, dtype=torch.int64))
        self.register_buffer("added", torch.zeros((), dtype=torch.int64))

    def __len__(self) -> int:
        """How many slots are filled."""
        return min(int(self.added), len(self.ids))

    def reset(self) -> None:
        """Empties all slots: after a change of the network that makes the past useless, or between two folds."""
        self.ids.fill_(EMPTY)
        self.added.zero_()

    @torch.no_grad()
    def add(self, embeddings: Float[Tensor, "n d"], labels: Integer[Tensor, " n"]) -> Integer[Tensor, " n"]:
        """Puts a batch of raw `embeddings` and its `labels` in, over the oldest slots; the ids of its rows here."""
        labels = as_labels(labels)
        check(
            len(labels) == len(embeddings),
            f"{len(labels)} labels for {len(embeddings)} embeddings: give one per embedding",
        )
        check(len(labels) <= len(self.ids), f"a batch of {len(labels)} does not fit a memory of {len(self.ids)}")
        check(
            embeddings.shape[1] == self.embeddings.shape[1],
            f"embeddings have {embeddings.shape[1]} dimensions, the memory {self.embeddings.shape[1]}",
        )
        ids = self.added + torch.arange(len(labels), device=self.ids.device)
        slots = ids % len(self.ids)
        self.embeddings[slots] = embeddings.detach().to(self.embeddings.dtype)
        self.labels[slots], self.ids[slots] = labels, ids
        self.added += len(labels)
        return ids

    def pairs(
        self,
        labels: Integer[Tensor, " n"],
        ids: Integer[Tensor, " n"] | None = None,
        meaning: Meaning = lambda labels: labels,
    ) -> Pairs:
        """The pairs of anchors with all slots; empty slots and own copies play no part.

        `labels` and `ids`: of the anchors, the ids being those that `add` gave them; without ids no anchor has a copy
        in the memory. `meaning(labels)`: the sets that these numbers stand for, where samples have several.
        """
        own = None if ids is None else self.ids
        pairs = Pairs.across(meaning(labels), meaning(self.labels), ids, own)
        filled = self.ids != EMPTY
        return Pairs(pairs.positive & filled, pairs.negative & filled, pairs.labels, pairs.candidate_labels)


def remembered(
    loss: nn.Module,
    memory: CrossBatchMemory,
    embeddings: Float[Tensor, "n d"],
    labels: Integer[Tensor, " n"],
    weight: float = 1.0,
    stored: Bool[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    """L(batch) + weight · L(batch, memory), the batch being put into the memory first.

    `loss`: any loss of pairs. `memory`: of the dimension of the embeddings. `embeddings` and `labels`: the batch, n × d
    and n. `weight`: of the second term. `stored`: which rows go into the memory; None: all of them.
    """
    if stored is None:
        ids = memory.add(embeddings, labels)
    else:
        check(stored.dtype == torch.bool, f"stored must be a boolean mask, not {stored.dtype}")
        check(stored.shape == labels.shape, f"stored has shape {tuple(stored.shape)}, labels {tuple(labels.shape)}")
        ids = torch.full_like(labels, EMPTY)
        ids[stored] = memory.add(embeddings[stored], labels[stored])
    within: Tensor = loss(embeddings, labels)
    across: Tensor = loss(embeddings, memory.pairs(labels, ids), candidates=memory.embeddings.to(embeddings.dtype))
    return within + weight * across
