"""Deep metric learning: embeddings in which look-alikes are neighbours.

    >>> import torch
    >>> from lookalike import losses
    >>> embeddings, labels = torch.eye(4), torch.tensor([0, 0, 1, 1])
    >>> losses.MultiSimilarity()(embeddings, labels)
    tensor(0.6566)

The parts: `losses`, `miners`, `regularisers`, `targets`, `memory`, `analysis`.
"""

from lookalike import losses, miners, regularisers

__all__ = ["losses", "miners", "regularisers"]
__version__ = "0.1.0"
