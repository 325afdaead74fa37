"""Random batches with one positive pair for certain, SPC-R.

Roth, Milbich, Sinha, Gupta, Ommer, Cohen: Revisiting Training Strategies and Generalization Performance in Deep Metric
Learning, ICML 2020.

Departs from the released code: the last image is another one of its class, never the same again, and belongs to a class
with at least two images. See also: class_balanced.
"""

import torch
from jaxtyping import Integer
from torch import Tensor

from lookalike.errors import check
from lookalike.samplers import course
from lookalike.samplers.course import Course, epoch_length
from lookalike.samplers.drawing import uniform
from lookalike.samplers.grouping import Groups


class ClassRandom:
    """SPC-R: m − 1 times a random class and a random image of it, then a second image of the class of one of them.

    >>> labels = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
    >>> for batch in ClassRandom(labels, batch_size=4):
    ...     *others, last = labels[batch].tolist()
    ...     print(last in others)
    True
    True
    """

    __iter__, __len__, step = course.iterate, course.length, course.step
    set_epoch, state_dict, load_state_dict = course.set_epoch, course.state_dict, course.load_state_dict

    def __init__(
        self,
        labels: Integer[Tensor, " n"],
        batch_size: int = 112,
        batches: int | None = None,
        seed: int = 0,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        check(batch_size > 1, f"a batch with a positive pair has at least 2 images, not {batch_size}")
        self.groups = Groups.of(labels)
        check(bool((self.groups.sizes > 1).any()), "no class has two images: no batch can hold a positive pair")
        count = epoch_length(len(labels), batch_size, batches)
        self.course = Course(self.compose, self.groups.of_image, count, batch_size, seed=seed, rank=rank, ranks=ranks)

    def compose(self, generator: torch.Generator) -> Integer[Tensor, "batches m"]:
        """One epoch of batches."""
        batches, free = self.course.batches, self.course.batch_size - 1
        classes = uniform(torch.full((batches, free), len(self.groups)), generator)
        several = (self.groups.sizes > 1).nonzero()[:, 0]
        # A batch of lone images alone has no class to pair within: its first member gives way.
        lone = (self.groups.sizes[classes] < 2).all(1)
        classes[lone, 0] = several[uniform(torch.full((int(lone.sum()),), len(several)), generator)]
        places = uniform(self.groups.sizes[classes], generator)

        member = torch.multinomial((self.groups.sizes[classes] > 1).double(), 1, generator=generator)
        chosen, place = classes.gather(1, member), places.gather(1, member)
        other = uniform(self.groups.sizes[chosen] - 1, generator)
        other += other >= place
        return self.groups.pick(torch.cat([classes, chosen], 1), torch.cat([places, other], 1))
