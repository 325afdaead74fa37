"""Miners choose what a loss works on in a batch: `(embeddings, labels) -> targets`, without gradient.

They take labels, or Pairs and then candidates too. `normalise`: where embeddings are compared ("sphere", "ball" or
"none"). `generator`: what they draw from; None: torch's own.
"""

from typing import Any

from lookalike import catalog
from lookalike.miners.distance_weighted import DistanceWeighted as DistanceWeighted
from lookalike.miners.hard import Hard as Hard
from lookalike.miners.multi_similarity import MultiSimilarity as MultiSimilarity
from lookalike.miners.random import Random as Random
from lookalike.miners.semihard import SemiHard as SemiHard
from lookalike.miners.softhard import SoftHard as SoftHard
from lookalike.miners.switched import Switched as Switched

MEMBERS: dict[str, type[Any]] = catalog.members(globals())

__all__ = sorted({"MEMBERS", "build", "names", *(kind.__name__ for kind in MEMBERS.values())})


def names() -> list[str]:
    """The names of all miners."""
    return sorted(MEMBERS)


def build(name: str, preset: str | None = None, **settings: Any) -> Any:
    """The miner called `name`, with the settings of `preset` where a paper has them, and with your own.

    >>> build("semihard", margin=0.3).margin
    0.3
    """
    return catalog.build("miner", MEMBERS, name, settings, preset)
