"""Deep metric learning and visual search: embeddings in which look-alikes are neighbours.

>>> import torch
>>> from lookalike import evaluate, losses
>>> embeddings, labels = torch.eye(4), torch.tensor([0, 0, 1, 1])
>>> losses.MultiSimilarity()(embeddings, labels)
tensor(0.6566)
>>> evaluate(torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]), labels)["recall@1"]
1.0
"""

from typing import TYPE_CHECKING

from lookalike import losses, miners, regularisers, samplers
from lookalike.evaluation import evaluate
from lookalike.label_sets import LabelSets
from lookalike.targets import Pairs, Triplets

__all__ = ["LabelSets", "Pairs", "Triplets", "evaluate", "losses", "miners", "regularisers", "samplers"]
__version__: str

if not TYPE_CHECKING:  # type checkers would take a module's __getattr__ as a licence for every name

    def __getattr__(name: str) -> str:
        """`__version__`, read from the installed package when it is needed."""
        if name == "__version__":
            from importlib.metadata import version

            return version("lookalike")
        raise AttributeError(f"module 'lookalike' has no attribute {name!r}")
