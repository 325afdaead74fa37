"""Random choices with and without replacement, many rows at once."""

import torch
from jaxtyping import Integer
from torch import Tensor


def uniform(limits: Integer[Tensor, "*shape"], generator: torch.Generator) -> Integer[Tensor, "*shape"]:
    """One random number from 0 … limit − 1 for every limit."""
    # Double precision, because single precision cannot reach every one of more than 2^24 images.
    drawn = torch.rand(limits.shape, generator=generator, dtype=torch.float64) * limits
    return torch.minimum(drawn.to(torch.int64), limits - 1)


def distinct(limits: Integer[Tensor, " rows"], count: int, generator: torch.Generator) -> Integer[Tensor, "rows count"]:
    """For every row `count` different numbers from 0 … limit − 1, each ordered choice equally likely.

    The k-th number is drawn from the limit − k numbers still free: no rejection, and no work that grows with the limit.

    >>> distinct(torch.tensor([3, 3]), 3, torch.Generator().manual_seed(0)).sort(1).values
    tensor([[0, 1, 2],
            [0, 1, 2]])
    """
    drawn = limits.new_zeros(len(limits), count)
    taken = limits.new_zeros(len(limits), 0)
    for number in range(count):
        free = uniform(limits - number, generator)
        # The j-th smallest taken number lies before free number f when at most f free numbers lie before it.
        before = taken - torch.arange(number) <= free[:, None]
        drawn[:, number] = free + before.sum(1)
        taken = torch.cat([taken, drawn[:, number, None]], 1).sort(1).values
    return drawn


def distinct_if_possible(
    limits: Integer[Tensor, " rows"], count: int, generator: torch.Generator
) -> Integer[Tensor, "rows count"]:
    """Like `distinct`; a row whose limit is below `count` draws with replacement."""
    drawn = uniform(limits[:, None].expand(-1, count), generator)
    enough = limits >= count
    drawn[enough] = distinct(limits[enough], count, generator)
    return drawn


def sample(limit: int, count: int, generator: torch.Generator) -> list[int]:
    """`count` different numbers from 0 … limit − 1 in random order, in time that grows with `count` only.

    >>> sorted(sample(4, 4, torch.Generator().manual_seed(0)))
    [0, 1, 2, 3]
    """
    if 3 * count > limit:
        everyone: list[int] = torch.randperm(limit, generator=generator)[:count].tolist()
        return everyone
    drawn: dict[int, None] = {}  # keeps the order, and every number once
    while len(drawn) < count:
        drawn |= dict.fromkeys(torch.randint(limit, (count - len(drawn),), generator=generator).tolist())
    return list(drawn)


def rounds(items: int, length: int, block: int, generator: torch.Generator) -> list[int]:
    """A queue without replacement: all items in random order, again in another order, …, `length` in total.

    Where one round ends and the next begins, items of the unfinished block are put off, so that no block of `block`
    consecutive entries holds an item twice, unless there are fewer items than that.

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
