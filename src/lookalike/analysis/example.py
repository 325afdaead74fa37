"""A small data set to show samplers on: twelve classes of one to ten images, in three categories, on a plane.

Some classes are crowded together and some lie far out, which shows what a sampler that chooses by embeddings reaches.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Integer
from torch import Tensor

SIZES = (6, 9, 4, 7, 1, 8, 5, 10, 3, 6, 7, 2)
PER_CATEGORY = 4


@dataclass(frozen=True)
class Example:
    """Labels, categories and places of images that do not exist."""

    labels: Integer[Tensor, " n"]
    categories: Integer[Tensor, " n"]
    vectors: Float[Tensor, "n 2"]


def example(seed: int = 11) -> Example:
    """
    >>> len(example().labels), example().categories.unique().tolist()
    (68, [0, 1, 2])
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(len(SIZES)).repeat_interleave(torch.tensor(SIZES))
    centres = torch.randn(len(SIZES), 2, generator=generator) * torch.linspace(0.4, 2.2, len(SIZES))[:, None]
    vectors = centres[labels] + 0.28 * torch.randn(len(labels), 2, generator=generator)
    return Example(labels, labels // PER_CATEGORY, vectors)
