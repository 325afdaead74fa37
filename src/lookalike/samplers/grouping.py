"""The images of a dataset by class: what every sampler looks at."""

from dataclasses import dataclass

import torch
from jaxtyping import Integer
from torch import Tensor

from lookalike.errors import check
from lookalike.labels import as_labels


@dataclass(frozen=True)
class Groups:
    """Images sorted by group: group g is `members[starts[g] : starts[g] + sizes[g]]`; `of_image` is each image's group.

    >>> groups = Groups.of(torch.tensor([7, 5, 7]))
    >>> groups.members.tolist(), groups.sizes.tolist(), groups.of_image.tolist()
    ([1, 0, 2], [1, 2], [1, 0, 1])
    """

    members: Integer[Tensor, " n"]
    starts: Integer[Tensor, " g"]
    sizes: Integer[Tensor, " g"]
    of_image: Integer[Tensor, " n"]

    def __len__(self) -> int:
        return len(self.sizes)

    @staticmethod
    def of(labels: Integer[Tensor, " n"]) -> "Groups":
        labels = as_labels(labels).cpu()
        check(len(labels) > 0, "there are no images: give one label per image")
        _, of_image, sizes = torch.unique(labels, return_inverse=True, return_counts=True)
        return Groups(of_image.argsort(stable=True), sizes.cumsum(0) - sizes, sizes, of_image)

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
