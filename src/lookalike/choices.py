"""Which columns of a mask are meant: one drawn from every row, the largest, or those that are listed one by one."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor

from lookalike.errors import check

Listed = Integer[Tensor, "k parts"] | Sequence[Sequence[int]]  # tuples of indices, one per row


def pick(choices: Bool[Tensor, "n m"], generator: torch.Generator | None = None) -> Integer[Tensor, " n"]:
    """One of the true columns of every row, uniformly (0 where there is none); None: torch's default generator.

    >>> pick(torch.tensor([[False, True, False], [False, False, True]]))
    tensor([1, 2])
    """
    return largest(torch.rand(choices.shape, generator=generator, device=choices.device), choices)


def largest(values: Float[Tensor, "n m"], choices: Bool[Tensor, "n m"]) -> Integer[Tensor, " n"]:
    """The true column with the largest value of every row (0 where there is none).

    >>> largest(torch.tensor([[0.3, 0.9, 0.5]]), torch.tensor([[True, False, True]]))
    tensor([2])
    """
    if not choices.shape[1]:
        return torch.zeros(len(choices), dtype=torch.int64, device=choices.device)
    return torch.where(choices, values, -torch.inf).argmax(1)


def fallback(choices: Bool[Tensor, "n m"], others: Bool[Tensor, "n m"]) -> Bool[Tensor, "n m"]:
    """The choices of every row that has any, the others of every row that has none.

    >>> fallback(torch.tensor([[True, False], [False, False]]), torch.tensor([[True, True], [True, True]]))
    tensor([[ True, False],
            [ True,  True]])
    """
    return torch.where(choices.any(1, keepdim=True), choices, others)


def mask_of(listed: Listed, size: tuple[int, int | None]) -> Bool[Tensor, "n m"]:
    """A mask of listed pairs; without a number of columns a pair of rows, which counts in both directions."""
    rows, columns = size
    anchor, candidate = places_of(listed, (rows, columns or rows)).unbind(1)
    mask = torch.zeros(rows, columns or rows, dtype=torch.bool, device=anchor.device)
    mask[anchor, candidate] = True
    return mask if columns is not None else mask | mask.T


def places_of(listed: Listed, sizes: tuple[int, ...]) -> Tensor:
    """Tuples of indices as a matrix, each below its size."""
    parts = len(sizes)
    places = torch.as_tensor(listed) if len(listed) else torch.zeros(0, parts, dtype=torch.int64)
    fits = places.dim() == 2 and places.shape[1] == parts and not places.is_floating_point()
    check(fits, f"give one row of {parts} indices each, not {places.dtype} of shape {tuple(places.shape)}")
    for place, size in zip(places.unbind(1), sizes, strict=True):
        inside = not len(place) or (int(place.min()) >= 0 and int(place.max()) < size)
        check(inside, f"an index is not among the {size} samples: indices run from 0 to {size - 1}")
    return places.to(torch.int64)
