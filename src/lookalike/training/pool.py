"""Train images as points to choose proxies from [math E]: each class has its own shuffled queue.

No image of a class comes up again before all of them have; images are augmented as in training and embedded in
inference mode, raw, without gradient.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn
from torch.utils.data import DataLoader

from lookalike.data import AugmentedImages
from lookalike.data.images.view import Ticket
from lookalike.errors import check
from lookalike.features import FeatureViews
from lookalike.geometry import normalise
from lookalike.processes import Ranks
from lookalike.samplers.grouping import Groups

AT_ONCE = 64  # images through the network


class Queues:
    """One shuffled queue per class; an empty one is filled again, in another order.

    >>> queues = Queues(torch.tensor([0, 1, 0, 1]), seed=0)
    >>> queues.draw(4).sort(1).values.tolist()
    [[0, 0, 2, 2], [1, 1, 3, 3]]
    """

    def __init__(self, labels: Integer[Tensor, " n"], seed: int) -> None:
        groups = Groups.of(labels)
        check(len(groups) == int(labels.max()) + 1, "some classes have no images: number the classes with dense()")
        self.generator = torch.Generator().manual_seed(seed)
        self.starts, self.sizes = groups.starts.tolist(), groups.sizes.tolist()
        self.order = groups.shuffled(self.generator).members
        self.taken = torch.zeros(len(groups), dtype=torch.int64)  # how many of each class's queue have been taken

    def draw(self, count: int) -> Integer[Tensor, "classes count"]:
        """The next `count` images of every class."""
        queues = map(self._queue, range(len(self.sizes)))
        return torch.stack([torch.tensor([next(queue) for _ in range(count)]) for queue in queues])

    def _queue(self, number: int) -> Iterator[int]:
        begin, size = self.starts[number], self.sizes[number]
        while True:
            if self.taken[number] == size:
                again = torch.randperm(size, generator=self.generator)
                self.order[begin : begin + size] = self.order[begin : begin + size][again]
                self.taken[number] = 0
            place = begin + int(self.taken[number])
            self.taken[number] += 1
            yield int(self.order[place])

    def state_dict(self) -> dict[str, Any]:
        return {"order": self.order.clone(), "taken": self.taken.clone(), "generator": self.generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.order, self.taken = state["order"].clone(), state["taken"].clone()
        self.generator.set_state(state["generator"])


class Pool:
    """Images from queues, as the network sees them now.

    dataset: gives (input, label), augmented as in training.
    labels: the class of every row, all numbers from 0 on in use.
    prepare: turns a batch of inputs into what the network takes.
    seed: of the queues' order.
    workers: processes that load the data; 0: this one.
    ranks: the processes that share the work; None: those of torch.distributed.
    """

    def __init__(
        self,
        dataset: torch.utils.data.Dataset[Any],
        labels: Integer[Tensor, " n"],
        prepare: Callable[[Tensor], Tensor] = lambda inputs: inputs,
        seed: int = 0,
        workers: int = 0,
        ranks: Ranks | None = None,
    ) -> None:
        self.dataset, self.prepare, self.workers = dataset, prepare, workers
        self.ranks = ranks or Ranks.current()
        self.queues = Queues(labels, seed)

    def draw(self, network: nn.Module, count: int, turn: int) -> Float[Tensor, "classes count d"]:
        """`count` images of every class, embedded by `network`; `turn` numbers the draws: each augments anew."""
        rows = self.queues.draw(count)
        flat = rows.flatten()
        points = self.ranks.spread(len(flat), lambda some: self._embed(network, flat, some, turn))
        return points.view(*rows.shape, -1)

    @torch.no_grad()
    def _embed(self, network: nn.Module, rows: Tensor, some: Tensor, turn: int) -> Tensor:
        device, training = next(network.parameters()).device, network.training
        entries: list[Any] = rows[some].tolist()
        if isinstance(self.dataset, AugmentedImages | FeatureViews):
            # epochs before the first: no draw of training has the same ticket
            entries = [Ticket(row, -1 - turn, 0, place) for row, place in zip(entries, some.tolist(), strict=True)]
        batches = [entries[begin : begin + AT_ONCE] for begin in range(0, len(entries), AT_ONCE)]
        own = torch.Generator().manual_seed(0)  # otherwise the loader consumes torch's global random numbers
        load: Any = DataLoader(self.dataset, batch_sampler=batches, num_workers=self.workers, generator=own)
        network.eval()
        try:
            parts = [normalise(network(self.prepare(inputs.to(device))), "none") for inputs, *_ in load]
        finally:
            network.train(training)
        return torch.cat(parts)
