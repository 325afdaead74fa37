"""The images of a dataset by class: what every sampler looks at."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Integer
from torch import Tensor

from lookalike.errors import UserError, check
from lookalike.label_sets import EMPTY, Labels, joint_sets, several
from lookalike.labels import joint_labels


@dataclass(frozen=True)
class Groups:
    """Images sorted by group: group g is `members[starts[g] : starts[g] + sizes[g]]`; `of_image` is each image's group.

    >>> groups = Groups.of(torch.tensor([7, 5, 7]))
    >>> groups.members.tolist(), groups.sizes.tolist(), groups.of_image.tolist()
    ([1, 0, 2], [1, 2], [1, 0, 1])
    """

    members: Integer[Tensor, " listed"]
    starts: Integer[Tensor, " g"]
    sizes: Integer[Tensor, " g"]
    of_image: Integer[Tensor, " n"]

    def __len__(self) -> int:
        return len(self.sizes)

    @staticmethod
    def of(labels: Labels) -> "Groups":
        if several(labels):
            raise UserError(
                "this sampler groups images by class and needs exactly one label per image: choose class_balanced"
            )
        (numbers,) = joint_labels(labels)
        check(len(numbers) > 0, "there are no images: give one label per image")
        _, of_image, sizes = torch.unique(numbers.cpu(), return_inverse=True, return_counts=True)
        return Groups(of_image.argsort(stable=True), sizes.cumsum(0) - sizes, sizes, of_image)

    @staticmethod
    def sharing(labels: Labels) -> "Groups":
        """Like `of`; images with several labels are in the group of each of them, those without any in their own.

        A label that only one image has is no group, unless the image has no other. Pairs that are known to be different
        are groups as well: nothing else brings them into one batch.

        >>> groups = Groups.sharing([{"red", "round"}, {"red"}, {"round"}, None])
        >>> [groups.members[start : start + size].tolist() for start, size in zip(groups.starts, groups.sizes)]
        [[0, 1], [0, 2], [3]]
        """
        if not several(labels):
            return Groups.of(labels)
        (sets,) = joint_sets(labels)
        numbers = sets.numbers.cpu()
        check(len(numbers) > 0, "there are no images: give labels")
        image, slot = (numbers != EMPTY).nonzero(as_tuple=True)
        label = numbers[image, slot]
        pairs = image.new_zeros(0, 2) if sets.opposed is None else _rows_of(sets.opposed.cpu(), numbers[:, 0])
        shared, alone = torch.bincount(label)[label] > 1, torch.ones(len(numbers), dtype=torch.bool)
        alone[image[shared]] = alone[pairs.flatten()] = False
        kept = shared | (alone[image] & (slot == 0))
        image = torch.cat((image[kept], pairs.flatten()))
        label = torch.cat((label[kept], numbers.max() + 1 + torch.arange(len(pairs)).repeat_interleave(2)))
        _, group, sizes = torch.unique(label, return_inverse=True, return_counts=True)
        return Groups(image[group.argsort(stable=True)], sizes.cumsum(0) - sizes, sizes, sets.kinds()[0].cpu())

    def pick(self, group: Integer[Tensor, "*shape"], place: Integer[Tensor, "*shape"]) -> Integer[Tensor, "*shape"]:
        """The images at the given places of the given groups."""
        return self.members[self.starts[group] + place]

    def shuffled(self, generator: torch.Generator) -> "Groups":
        """The same groups, the images of each in random order."""
        order = torch.randperm(len(self.members), generator=generator)
        return Groups(order[self.of_image[order].argsort(stable=True)], self.starts, self.sizes, self.of_image)

    def in_runs(self, generator: torch.Generator) -> Integer[Tensor, " n"]:
        """All images: groups in random order, each group's images together, in random order."""
        order = torch.randperm(len(self.members), generator=generator)
        rank = torch.randperm(len(self), generator=generator)
        return order[rank[self.of_image[order]].argsort(stable=True)]

    def chunked(self, size: int | None, generator: torch.Generator) -> "Groups":
        """The images of every group drawn into groups of at most `size`; None: the groups as they are.

        >>> Groups.of([0] * 5).chunked(2, torch.Generator()).sizes.tolist()
        [2, 2, 1]
        """
        if size is None:
            return self
        check(size > 0, f"per_class must be at least 1, not {size}")
        members = self.shuffled(generator).members
        group = self.of_image[members]
        chunk = (torch.arange(len(members)) - self.starts[group]) // size
        numbers = torch.empty_like(members)
        numbers[members] = group * len(members) + chunk
        return Groups.of(numbers)


def whole_starts(sizes: Sequence[int], part: int, count: int) -> list[int]:
    """Where `count` parts begin in a cycle of groups of such `sizes`: each at the group that the last part cut, so that
    it comes again, whole. Only a group larger than a part is cut for good.

    >>> whole_starts([2, 2, 3], part=5, count=3)
    [0, 4, 2]
    """
    ends = torch.tensor(sizes).cumsum(0).tolist()
    starts = [0]
    while len(starts) < count:
        begin, reach = starts[-1], starts[-1] + part
        laps, rest = divmod(reach, ends[-1])
        place = bisect_right(ends, rest)
        border = laps * ends[-1] + (ends[place - 1] if place else 0)
        starts.append((border if border > begin else reach) % ends[-1])
    return starts


def check_divides(batch_size: int, per_class: int) -> None:
    check(
        per_class > 0 and batch_size > 0 and batch_size % per_class == 0,
        f"{per_class} images per class do not divide a batch of {batch_size}: choose a batch_size that is a multiple",
    )


def classes_per_batch(groups: Groups, batch_size: int, per_class: int) -> int:
    """m / n, once it is clear that the data has as many different classes."""
    check_divides(batch_size, per_class)
    classes = batch_size // per_class
    check(
        classes <= len(groups),
        f"a batch of {batch_size} with {per_class} per class needs {classes} classes, the data has {len(groups)}: "
        "choose a smaller batch_size or a larger per_class",
    )
    return classes


def _rows_of(pairs: Integer[Tensor, "p 2"], numbers: Integer[Tensor, " n"]) -> Integer[Tensor, "q 2"]:
    """Pairs of numbers as pairs of rows, of those whose both numbers are here."""
    rows = torch.full((1 + int(max(pairs.max(), numbers.max())),), -1)
    rows[numbers] = torch.arange(len(numbers))
    known = rows[pairs]
    return known[(known >= 0).all(1)]
