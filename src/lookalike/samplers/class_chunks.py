"""Class chunks: the images of every class cut into chunks of M, each chunk used once before new ones are cut.

Wang, Han, Huang, Dong, Scott: Multi-Similarity Loss with General Pair Weighting for Deep Metric Learning, CVPR 2019,
released code, batches of 16 × 5; `xbm=True` is the variant in the released code of Wang, Zhang, Huang, Scott:
Cross-Batch Memory for Embedding Learning, CVPR 2020. See also: class_queue, class_balanced.
"""

from collections.abc import Iterator
from itertools import islice

import torch
from jaxtyping import Integer
from torch import Tensor

from lookalike.samplers import course
from lookalike.samplers.class_balanced import classes_per_batch
from lookalike.samplers.course import Course, epoch_length
from lookalike.samplers.drawing import sample
from lookalike.samplers.grouping import Groups


def longest_period(counts: Integer[Tensor, " classes"], classes: int) -> int:
    """The most batches of `classes` classes that chunks can last: the largest t with Σ min(count, t) ≥ classes · t.

    >>> longest_period(torch.tensor([100, 1, 1]), 2)
    2
    """
    low, high = 1, int(counts.sum()) // classes
    while low < high:
        middle = (low + high + 1) // 2
        enough = int(counts.clamp(max=middle).sum()) >= classes * middle
        low, high = (middle, high) if enough else (low, middle - 1)
    return low


class ClassChunks:
    """MS batches: random classes that have chunks left, one chunk of M images each; new chunks when too few are left.

    With `xbm`, classes are padded to a multiple of M instead of losing their remainder, and a class is drawn with
    probability proportional to the chunks it has left.

    >>> labels = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    >>> for batch in ClassChunks(labels, batch_size=4, per_class=2):
    ...     print(len(set(batch)), labels[batch].unique(return_counts=True)[1])
    4 tensor([2, 2])
    4 tensor([2, 2])
    4 tensor([2, 2])
    """

    __iter__, __len__, step = course.iterate, course.length, course.step
    set_epoch, state_dict, load_state_dict = course.set_epoch, course.state_dict, course.load_state_dict

    def __init__(
        self,
        labels: Integer[Tensor, " n"],
        batch_size: int = 80,
        per_class: int = 5,
        xbm: bool = False,
        batches: int | None = None,
        seed: int = 0,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        self.groups = Groups.of(labels)
        self.classes = classes_per_batch(self.groups, batch_size, per_class)
        self.xbm = xbm
        sizes = self.groups.sizes
        counts = (sizes + per_class - 1) // per_class if xbm else (sizes // per_class).clamp(min=1)
        self.sizes: list[int] = sizes.tolist()
        self.counts: list[int] = counts.tolist()
        self.period = longest_period(counts, self.classes)
        count = epoch_length(len(labels), batch_size, batches)
        self.course = Course(self.compose, self.groups.of_image, count, batch_size, per_class, seed, rank, ranks)

    def _cut(self, group: int, generator: torch.Generator) -> Iterator[list[int]]:
        """The chunks of a class, as places in it: shuffled, padded by places drawn again, no more than can be used."""
        size, count, n = self.sizes[group], self.counts[group], self.course.per_class
        places = sample(max(size, n * count), n * min(count, self.period), generator)
        for at in [at for at, place in enumerate(places) if place >= size]:
            places[at] = int(torch.randint(size, (), generator=generator))
        return iter([places[at : at + n] for at in range(0, len(places), n)])

    def _draw(self, left: list[int], generator: torch.Generator) -> list[int]:
        """The classes of a batch, as places among the available ones, which have so many chunks left."""
        if not self.xbm:
            return sample(len(left), self.classes, generator)
        weights = torch.tensor(left, dtype=torch.float64)
        drawn: list[int] = torch.multinomial(weights, self.classes, generator=generator).tolist()
        return drawn

    def _until_rebuilt(self, generator: torch.Generator) -> Iterator[Integer[Tensor, " m"]]:
        """Batches until too few classes have chunks left."""
        available, left = list(range(len(self.groups))), list(self.counts)
        cut: dict[int, Iterator[list[int]]] = {}
        while len(available) >= self.classes:
            drawn = self._draw(left, generator)
            classes = [available[place] for place in drawn]
            cut |= {group: self._cut(group, generator) for group in classes if group not in cut}
            places = torch.tensor([next(cut[group]) for group in classes])
            yield self.groups.pick(torch.tensor(classes)[:, None].expand_as(places), places).flatten()
            # A class without chunks gives its place to the last one: as cheap with a million classes as with ten.
            for place in sorted(drawn, reverse=True):
                left[place] -= 1
                if left[place] == 0:
                    available[place], left[place] = available[-1], left[-1]
                    available.pop()
                    left.pop()

    def compose(self, generator: torch.Generator) -> Integer[Tensor, "batches m"]:
        """One epoch of batches."""
        rows: list[Tensor] = []
        while len(rows) < self.course.batches:
            rows += islice(self._until_rebuilt(generator), self.course.batches - len(rows))
        return torch.stack(rows)
