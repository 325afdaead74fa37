"""What a batch is trained on: a loss, what chooses its tuples, what is added to it. No loss is known by name here."""

from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from typing import Any

from jaxtyping import Float, Integer
from torch import Tensor, nn

from lookalike.errors import check
from lookalike.label_sets import LabelSets
from lookalike.targets import Targets
from lookalike.training.memory import CrossBatchMemory

Miner = Callable[..., Targets]


class Objective(nn.Module):
    """loss(mined tuples of the batch) + weight · loss(batch against the memory) + regularisers, term by term.

    loss: called as loss(embeddings, targets).
    miner: chooses the pairs or triplets of a batch; None: the loss takes them from the labels.
    regularisers: each adds a term on the embeddings alone.
    memory: past embeddings as further candidates [math A19]; None: the batch alone.
    memory_weight: what the loss against the memory is multiplied by.
    memory_start: the step from which the memory acts; until then nothing is put in.
    sets: what each class number stands for, where images have several labels or none [architecture supervision].

    >>> import torch
    >>> from lookalike.losses import Triplet
    >>> terms = Objective(Triplet())(torch.eye(4), torch.tensor([0, 0, 1, 1]), step=0)
    >>> list(terms), round(terms["loss"].item(), 2)
    (['loss'], 0.2)
    """

    def __init__(
        self,
        loss: nn.Module,
        miner: Miner | None = None,
        regularisers: Sequence[nn.Module] = (),
        memory: CrossBatchMemory | None = None,
        memory_weight: float = 1.0,
        memory_start: int = 1000,
        sets: LabelSets | None = None,
    ) -> None:
        super().__init__()
        check(memory_start >= 0, f"the memory starts at step 0 or later, not {memory_start}")
        alone = memory is not None and miner is not None and "candidates" not in signature(miner).parameters
        check(not alone, f"the miner {type(miner).__name__} works within one batch only: leave out the memory")
        self.loss, self.miner, self.memory = loss, miner, memory
        self.regularisers = nn.ModuleList(regularisers)
        self.memory_weight, self.memory_start = memory_weight, memory_start
        self.sets = sets

    def forward(
        self, embeddings: Float[Tensor, "n d"], labels: Integer[Tensor, " n"], step: int
    ) -> dict[str, Float[Tensor, ""]]:
        """The terms by name; their sum is what is minimised."""
        terms = {"loss": self.loss(embeddings, self._targets(embeddings, labels))}
        if self.memory is not None and step >= self.memory_start:
            terms["memory"] = self.memory_weight * self._remembered(self.memory, embeddings, labels)
        for regulariser in self.regularisers:
            terms[type(regulariser).__name__] = regulariser(embeddings)
        return terms

    def _meaning(self, labels: Tensor) -> Tensor | LabelSets:
        return labels if self.sets is None else self.sets[labels].to(labels.device)

    def _targets(self, embeddings: Tensor, numbers: Tensor) -> Targets:
        labels = self._meaning(numbers)
        if self.miner is not None:
            return self.miner(embeddings.detach(), labels)
        draw = getattr(self.loss, "targets", None)  # losses that draw tuples themselves
        return labels if draw is None else draw(labels)

    def _remembered(self, memory: CrossBatchMemory, embeddings: Tensor, labels: Tensor) -> Tensor:
        ids = memory.add(embeddings, labels)
        pairs: Targets = memory.pairs(labels, ids, self._meaning)
        candidates = memory.embeddings.to(embeddings.dtype)
        if self.miner is not None:
            pairs = self.miner(embeddings.detach(), pairs, candidates)
        value: Tensor = self.loss(embeddings, pairs, candidates=candidates)
        return value

    def parameter_groups(self, base_lr: float) -> Iterator[dict[str, Any]]:
        """The loss's own parameters (proxies, boundaries, …) at their paper's rates; the network's is `base_lr`."""
        for group in getattr(self.loss, "parameter_groups", lambda _: [])(base_lr):
            yield {"name": "loss", **group}

    def epoch_started(self, epoch: int) -> None:
        """Tell the loss, if it asks for that, which `epoch` begins; the first is 0."""
        started: Any = getattr(self.loss, "epoch_started", None)
        if started is not None:
            started(epoch)
