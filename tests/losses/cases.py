"""Batches on which a loss is compared with its equation written as loops, and the comparison: values and gradients."""

import torch

from lookalike import losses
from lookalike.targets import Classes, Pairs, Triplets
from tests.losses.loops import sides

UNEVEN = [4, 900, 4, 17, 900, 4, 17, 2, 900, 4]  # classes of 4, 3, 2 and 1
TRIPLETS = [
    (0, 2, 1),
    (0, 5, 3),
    (1, 4, 0),
    (3, 6, 9),
    (8, 1, 7),
    (9, 0, 4),
    (9, 9, 2),
]  # the last one as `switched` does
INVALID = (0, 0, 0)  # stands in the list with valid = False
LABELS = [4, 0, 4, 1, 1, 4, 3]  # of five classes, one of them absent


def random_rows(count, dim=4, seed=0):
    """Rows of lengths from 0.2 to 2: some inside the unit ball, some outside."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(count, dim, generator=generator, dtype=torch.float64)
    lengths = 0.2 + 1.8 * torch.rand(count, 1, generator=generator, dtype=torch.float64)
    return (rows / rows.norm(dim=1, keepdim=True) * lengths).requires_grad_()


def rectangle():
    """Seven anchors, nine candidates: some share ids with anchors, one anchor has no positive, one class no anchor."""
    z, c = random_rows(7, seed=1), random_rows(9, seed=2)
    labels, columns = [1, 1, 2, 3, 3, 8, 2], [1, 1, 2, 2, 3, 3, 3, 4, 8]
    ids, column_ids = list(range(7)), [0, 1, 100, 2, 3, 101, 102, 103, 5]
    with torch.no_grad():
        for place, number in enumerate(column_ids):
            if number < 7:
                c[place] = z[number]
    pairs = Pairs.across(*(torch.tensor(part) for part in (labels, columns, ids, column_ids)))
    return z, c, pairs, sides(labels, columns, ids, column_ids)


def within(labels, seed=3):
    z = random_rows(len(labels), seed=seed)
    return z, z, torch.tensor(labels), sides(labels)


def with_duplicates():
    """A positive pair, a negative pair and a pair of strangers, each of equal rows."""
    _, _, labels, both = within([0, 0, 0, 1, 1, 2, 2])
    z = random_rows(4, seed=5).detach()[[0, 0, 1, 1, 2, 3, 2]].clone().requires_grad_()
    return z, z, labels, both


def masked(threshold):
    """Pairs in neither mask play no part, whatever their labels would say; some rows or columns repel no one."""
    z = random_rows(6, seed=8)
    draws = torch.rand(6, 6, generator=torch.Generator().manual_seed(4))
    pairs = Pairs((draws < 0.3).fill_diagonal_(False), (draws > threshold).fill_diagonal_(False))
    both = tuple([row.nonzero().flatten().tolist() for row in mask] for mask in (pairs.positive, pairs.negative))
    return z, z, pairs, both


BATCHES = {  # each gives rows, columns, targets, and the lists of positives and negatives
    "uneven classes": lambda: within(UNEVEN, seed=0),
    "candidates with ids": rectangle,
    "one class": lambda: within([3, 3, 3, 3]),
    "all different": lambda: within([5, 1, 9, 2]),
    "one sample": lambda: within([7]),
    "two samples": lambda: within([7, 7]),
    "one pair and a stranger": lambda: within([7, 7, 1]),
    "mixed": lambda: within([0, 0, 0, 1, 2]),
    "duplicated rows": with_duplicates,
    "some pairs": lambda: masked(0.5),
    "fewer pairs": lambda: masked(0.85),
}
CLASS_BATCHES = {  # labels, and the number of classes
    "one class absent": (LABELS, 5),
    "one class": ([2, 2, 2], 5),
    "all different": ([0, 1, 2, 3, 4], 5),
    "one sample": ([3], 5),
    "one class overall": ([0, 0, 0], 1),
}


def assert_equation(name, settings, loops, batch, kinked=False, flat=False):
    """A loss of pairs on one of BATCHES.

    `kinked`: where rows are equal it sits on a node or in a tie, and any sub-gradient is right. `flat`: with these
    settings there is nothing to gain.
    """
    loss = losses.build(name, **settings)
    z, c, targets, both = BATCHES[batch]()
    if c is not z:
        c.requires_grad_()
    leaves = [z] if c is z else [z, c]
    value = loss(z, targets) if c is z else loss(z, targets, candidates=c)
    assert_same(value, loops(z, c, *both), leaves, gradients=not (kinked and batch == "duplicated rows"))
    if batch == "uneven classes":
        assert flat or torch.autograd.grad(loss(z, targets), z)[0].abs().max() > 1e-6, "this batch tests nothing"


def assert_class_equation(name, settings, loops, batch):
    """A loss that learns a weight per class, on one of CLASS_BATCHES; its loops take rows, labels and weights."""
    labels, classes = CLASS_BATCHES[batch]
    loss = losses.build(name, classes=classes, dim=4, **settings).double()
    (weight,) = loss.parameters()
    with torch.no_grad():
        weight.copy_(random_rows(len(weight), seed=11))
    z = random_rows(len(labels), seed=12)
    value = loss(z, torch.tensor(labels))
    assert_same(value, loops(z, labels, weight), [z, weight])
    assert loss(z, Classes(torch.tensor(labels))) == value


def triplets(entries=TRIPLETS, labels=UNEVEN):
    columns = [torch.tensor(part) for part in zip(*entries, INVALID, strict=True)]
    valid = torch.tensor([True] * len(entries) + [False])
    return Triplets(*columns, valid, torch.tensor(labels))


def assert_listed(name, settings, loops):
    """A loss of triplets: on a list of them, on none, and on a list that points into candidates."""
    loss = losses.build(name, **settings)
    z = random_rows(len(UNEVEN))
    assert_same(loss(z, triplets()), loops(z, z, TRIPLETS), [z])
    assert_same(loss(z, triplets([])), loops(z, z, []), [z])
    z, c, _, _ = rectangle()
    entries, columns = [(0, 1, 4), (2, 2, 8), (3, 5, 0), (6, 3, 7)], [1, 1, 2, 2, 3, 3, 3, 4, 8]
    c.requires_grad_()
    assert_same(loss(z, triplets(entries, columns), candidates=c), loops(z, c, entries), [z, c])


def assert_same(value, expected, leaves, tolerance=1e-9, gradients=True):
    """Equal values and equal gradients with respect to every leaf."""
    torch.testing.assert_close(value, expected, rtol=tolerance, atol=tolerance, check_dtype=False)
    if not gradients:
        return
    ours = torch.autograd.grad(value, leaves, allow_unused=True)
    theirs = torch.autograd.grad(expected, leaves, allow_unused=True)
    for leaf, mine, right in zip(leaves, ours, theirs, strict=True):
        zero = torch.zeros_like(leaf)
        mine, right = zero if mine is None else mine, zero if right is None else right
        torch.testing.assert_close(mine, right, rtol=tolerance, atol=tolerance)
