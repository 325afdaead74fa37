"""Class chunks: the images of every class cut into chunks of M, each chunk used once before new ones are cut.

Wang, Han, Huang, Dong, Scott: Multi-Similarity Loss with General Pair Weighting for Deep Metric Learning, CVPR 2019,
released code, batches of 16 × 5; `xbm=True` is the variant in the released code of Wang, Zhang, Huang, Scott:
Cross-Batch Memory for Embedding Learning, CVPR 2020. See also: class_queue, class_balanced.
"""

import torch
from jaxtyping import Integer
from torch import Tensor

from lookalike.samplers import course
from lookalike.samplers.class_balanced import classes_per_batch
from lookalike.samplers.course import Course, epoch_length
from lookalike.samplers.drawing import uniform
from lookalike.samplers.grouping import Groups


def chunks(
    groups: Groups, counts: Integer[Tensor, " classes"], per_class: int, generator: torch.Generator
) -> Integer[Tensor, "chunks per_class"]:
    """For each class `counts` chunks of its shuffled images, padded by images drawn again where it has too few."""
    lengths = counts * per_class
    classes = torch.arange(len(groups)).repeat_interleave(lengths)
    place = torch.arange(len(classes)) - (lengths.cumsum(0) - lengths)[classes]
    sizes = groups.sizes[classes]
    place = torch.where(place < sizes, place, uniform(sizes, generator))
    images = groups.shuffled(generator).pick(classes, place)
    mixed = torch.randperm(len(images), generator=generator)
    return images[mixed[classes[mixed].argsort(stable=True)]].view(-1, per_class)


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
        count = epoch_length(len(labels), batch_size, batches)
        self.course = Course(self.compose, self.groups.of_image, count, batch_size, per_class, seed, rank, ranks)

    def choose(self, left: Integer[Tensor, " classes"], generator: torch.Generator) -> Integer[Tensor, " chosen"]:
        """The classes of one batch, among those with chunks left."""
        if self.xbm:
            return torch.multinomial(left.double(), self.classes, generator=generator)
        available = left.nonzero()[:, 0]
        return available[torch.randperm(len(available), generator=generator)[: self.classes]]

    def compose(self, generator: torch.Generator) -> Integer[Tensor, "batches m"]:
        """One epoch of batches."""
        sizes, per_class = self.groups.sizes, self.course.per_class
        counts = (sizes + per_class - 1) // per_class if self.xbm else (sizes // per_class).clamp(min=1)
        starts = counts.cumsum(0) - counts
        left = torch.zeros_like(counts)
        rows = []
        for _ in range(self.course.batches):
            if int(left.count_nonzero()) < self.classes:
                cut, left = chunks(self.groups, counts, per_class, generator), counts.clone()
            chosen = self.choose(left, generator)
            rows.append(cut[starts[chosen] + counts[chosen] - left[chosen]].flatten())
            left[chosen] -= 1
        return torch.stack(rows)
