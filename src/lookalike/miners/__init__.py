"""Miners choose what a loss works on in a batch: `(embeddings, labels) -> targets`, without gradient.

They take labels, or Pairs and then candidates too. `normalise`: where embeddings are compared ("sphere", "ball" or
"none"). `generator`: what they draw from; None: torch's own.
"""

from typing import Any

from lookalike import catalog
from lookalike.miners.distance_weighted import DistanceWeighted
from lookalike.miners.hard import Hard
from lookalike.miners.multi_similarity import MultiSimilarity
from lookalike.miners.random import Random
from lookalike.miners.semihard import SemiHard
from lookalike.miners.softhard import SoftHard
from lookalike.miners.switched import Switched

MEMBERS: dict[str, type[Any]] = {
    "distance_weighted": DistanceWeighted,
    "hard": Hard,
    "multi_similarity": MultiSimilarity,
    "random": Random,
    "semihard": SemiHard,
    "softhard": SoftHard,
    "switched": Switched,
}

__all__ = [
    "MEMBERS",
    "DistanceWeighted",
    "Hard",
    "MultiSimilarity",
    "Random",
    "SemiHard",
    "SoftHard",
    "Switched",
    "build",
    "names",
]


def names() -> list[str]:
    """The names of all miners."""
    return sorted(MEMBERS)


def build(name: str, preset: str | None = None, **settings: Any) -> Any:
    """The miner called `name`, with the settings of `preset` where a paper has them, and with your own.

    >>> build("semihard", margin=0.3).margin
    0.3
    """
    return catalog.build("miner", MEMBERS, name, settings, preset)
