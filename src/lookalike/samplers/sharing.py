"""One batch, several ranks: every rank gets the same number of images, and classes stay together wherever they fit."""

from collections.abc import Sequence


def shares(classes: Sequence[int], ranks: int) -> list[list[int]]:
    """The places of a batch for each rank, given the class at every place.

    Classes are dealt out whole, the largest first, each to the rank with the least room that still holds it; only what
    fits nowhere whole is cut. Equally large classes that fill the ranks evenly are never cut.

    >>> shares([4, 4, 9, 9, 7, 7, 5, 5], ranks=2)
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    size = len(classes) // ranks
    places: dict[int, list[int]] = {}
    for place, label in enumerate(classes):
        places.setdefault(label, []).append(place)
    dealt: list[list[int]] = [[] for _ in range(ranks)]
    loose: list[int] = []
    for group in sorted(places.values(), key=len, reverse=True):
        fitting = [rank for rank in range(ranks) if size - len(dealt[rank]) >= len(group)]
        if fitting:
            dealt[max(fitting, key=lambda rank: len(dealt[rank]))] += group
        else:
            loose += group
    for rank in sorted(range(ranks), key=lambda rank: len(dealt[rank])):
        room = size - len(dealt[rank])
        dealt[rank] += loose[:room]
        loose = loose[room:]
    return [sorted(rank) for rank in dealt]
