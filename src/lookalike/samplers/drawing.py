"""Random choices with and without replacement, many rows at once."""

import torch
from jaxtyping import Float, Integer
from torch import Tensor

BLOCK = 4096  # rows whose weights are held at once


def uniform(limits: Integer[Tensor, "*shape"], generator: torch.Generator) -> Integer[Tensor, "*shape"]:
    """One random number from 0 … limit − 1 for every limit."""
    # Double precision, because single precision cannot reach every one of more than 2^24 images.
    numbers = torch.rand(limits.shape, generator=generator, dtype=torch.float64) * limits
    return torch.minimum(numbers.to(torch.int64), limits - 1)


def distinct(limits: Integer[Tensor, " rows"], count: int, generator: torch.Generator) -> Integer[Tensor, "rows count"]:
    """For every row `count` different numbers from 0 … limit − 1, each ordered choice equally likely.

    The k-th number is drawn from the limit − k numbers still free: no rejection, and no work that grows with the limit.

    >>> distinct(torch.tensor([3, 3]), 3, torch.Generator().manual_seed(0)).sort(1).values
    tensor([[0, 1, 2],
            [0, 1, 2]])
    """
    numbers = limits.new_zeros(len(limits), count)
    taken = limits.new_zeros(len(limits), 0)
    for k in range(count):
        free = uniform(limits - k, generator)
        # The j-th smallest taken number lies before free number f when at most f free numbers lie before it.
        before = taken - torch.arange(k) <= free[:, None]
        numbers[:, k] = free + before.sum(1)
        taken = torch.cat([taken, numbers[:, k, None]], 1).sort(1).values
    return numbers


def distinct_if_possible(
    limits: Integer[Tensor, " rows"], count: int, generator: torch.Generator
) -> Integer[Tensor, "rows count"]:
    """Like `distinct`; a row whose limit is below `count` draws with replacement."""
    numbers = uniform(limits[:, None].expand(-1, count), generator)
    enough = limits >= count
    numbers[enough] = distinct(limits[enough], count, generator)
    return numbers


def weighted(
    weights: Float[Tensor, "groups width"], rows: Integer[Tensor, " rows"], count: int, generator: torch.Generator
) -> Integer[Tensor, "rows count"]:
    """For every row `count` different places of its group, each drawn by its weight; 0: there is no such place.

    A group with fewer places than `count` draws with replacement.

    >>> weighted(torch.tensor([[0.0, 5.0, 1.0]]), torch.tensor([0]), 2, torch.Generator()).sort(1).values
    tensor([[1, 2]])
    """
    parts = []
    for some in torch.split(rows, BLOCK):
        drawn = torch.multinomial(weights[some], count, replacement=True, generator=generator)
        enough = (weights[some] > 0).sum(1) >= count
        if enough.any():
            drawn[enough] = torch.multinomial(weights[some[enough]], count, generator=generator)
        parts.append(drawn)
    return torch.cat(parts)


def sample(limit: int, count: int, generator: torch.Generator) -> list[int]:
    """`count` different numbers from 0 … limit − 1 in random order, in time that grows with `count` only.

    >>> sorted(sample(4, 4, torch.Generator().manual_seed(0)))
    [0, 1, 2, 3]
    """
    if 3 * count > limit:
        first: list[int] = torch.randperm(limit, generator=generator)[:count].tolist()
        return first
    numbers: dict[int, None] = {}  # keeps the order, and each number once
    while len(numbers) < count:
        numbers |= dict.fromkeys(torch.randint(limit, (count - len(numbers),), generator=generator).tolist())
    return list(numbers)


def rounds(items: int, length: int, block: int, generator: torch.Generator) -> list[int]:
    """A queue without replacement: all items in random order, again in another order, …, `length` in total.

    Where one round ends and the next begins, items that the unfinished block already holds are moved to the end of the
    new round, so that no block of `block` consecutive entries holds an item twice, unless there are fewer items.

    >>> queue = rounds(5, 12, block=3, generator=torch.Generator().manual_seed(0))
    >>> [len(set(queue[at : at + 3])) for at in (0, 3, 6, 9)]
    [3, 3, 3, 3]
    """
    queue: list[int] = []
    while len(queue) < length:
        fresh: list[int] = torch.randperm(items, generator=generator).tolist()
        begun = len(queue) % block
        if begun:
            recent = set(queue[-begun:])
            fresh.sort(key=recent.__contains__)
        queue += fresh
    return queue[:length]
