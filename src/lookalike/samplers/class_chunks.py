"""Class chunks: the images of every class cut into chunks of M, each chunk used once before new ones are cut.

Wang, Han, Huang, Dong, Scott: Multi-Similarity Loss with General Pair Weighting for Deep Metric Learning, CVPR 2019,
released code, batches of 16 × 5; `xbm=True` is the variant in the released code of Wang, Zhang, Huang, Scott:
Cross-Batch Memory for Embedding Learning, CVPR 2020. See also: class_queue, class_balanced.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from jaxtyping import Integer
from torch import Tensor

from lookalike.label_sets import Labels
from lookalike.samplers.batch_sampler import BatchSampler, shows_settings
from lookalike.samplers.drawing import sample
from lookalike.samplers.grouping import Groups, classes_per_batch


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


@dataclass(frozen=True)
class Chunks:
    """How many images and chunks every class has, and what a batch takes of them."""

    groups: Groups
    classes: int
    per_class: int
    xbm: bool
    sizes: list[int]
    counts: list[int]
    period: int

    @staticmethod
    def of(groups: Groups, classes: int, per_class: int, xbm: bool) -> "Chunks":
        sizes = groups.sizes
        counts = (sizes + per_class - 1) // per_class if xbm else (sizes // per_class).clamp(min=1)
        period = longest_period(counts, classes)
        return Chunks(groups, classes, per_class, xbm, sizes.tolist(), counts.tolist(), period)

    def _cut(self, group: int, generator: torch.Generator) -> Iterator[list[int]]:
        """The chunks of a class, as places in it: shuffled, padded by places drawn again, no more than can be used."""
        size, count, n = self.sizes[group], self.counts[group], self.per_class
        places = sample(max(size, n * count), n * min(count, self.period), generator)
        for at in [at for at, place in enumerate(places) if place >= size]:
            places[at] = int(torch.randint(size, (), generator=generator))
        return iter([places[at : at + n] for at in range(0, len(places), n)])

    def _draw(self, left: list[int], generator: torch.Generator) -> list[int]:
        """The classes of a batch, as places in `left`, the numbers of chunks that available classes have left."""
        if not self.xbm:
            return sample(len(left), self.classes, generator)
        weights = torch.tensor(left, dtype=torch.float64)
        places: list[int] = torch.multinomial(weights, self.classes, generator=generator).tolist()
        return places

    def _until_rebuilt(self, generator: torch.Generator) -> Iterator[Integer[Tensor, " m"]]:
        """Batches until too few classes have chunks left."""
        available, left = list(range(len(self.groups))), list(self.counts)
        cut: dict[int, Iterator[list[int]]] = {}
        while len(available) >= self.classes:
            turn = self._draw(left, generator)
            classes = [available[place] for place in turn]
            cut |= {group: self._cut(group, generator) for group in classes if group not in cut}
            places = torch.tensor([next(cut[group]) for group in classes])
            yield self.groups.pick(torch.tensor(classes)[:, None].expand_as(places), places).flatten()
            # A class without chunks gives its place to the last one: as cheap with a million classes as with ten.
            for place in sorted(turn, reverse=True):
                left[place] -= 1
                if left[place] == 0:
                    available[place], left[place] = available[-1], left[-1]
                    available.pop()
                    left.pop()

    def compose(self, batches: int, generator: torch.Generator) -> Integer[Tensor, "batches m"]:
        rows: list[Tensor] = []
        while len(rows) < batches:
            rows += islice(self._until_rebuilt(generator), batches - len(rows))
        return torch.stack(rows)


@shows_settings
def ClassChunks(
    labels: Labels,
    batch_size: int = 80,
    per_class: int = 5,
    xbm: bool = False,
    batches: int | None = None,
    *,
    seed: int = 0,
    rank: int = 0,
    ranks: int = 1,
) -> BatchSampler:
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
    groups = Groups.of(labels)
    chunks = Chunks.of(groups, classes_per_batch(groups, batch_size, per_class), per_class, xbm)
    return BatchSampler(
        chunks.compose, groups.of_image, batch_size, per_class, batches, seed=seed, rank=rank, ranks=ranks
    )
