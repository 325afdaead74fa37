"""Regularisers: `forward(embeddings) -> scalar`, added to any loss; `embeddings` are raw, n × d."""

from typing import Any

from torch import nn

from lookalike import catalog
from lookalike.regularisers.embedding_norm import EmbeddingNorm as EmbeddingNorm
from lookalike.regularisers.spectral_decay import SpectralDecay as SpectralDecay

MEMBERS: dict[str, type[nn.Module]] = catalog.members(globals())

__all__ = sorted({"MEMBERS", "build", "names", *(kind.__name__ for kind in MEMBERS.values())})


def names() -> list[str]:
    """The names of all regularisers."""
    return sorted(MEMBERS)


def build(name: str, preset: str | None = None, **settings: Any) -> nn.Module:
    """The regulariser called `name`, with the settings of `preset` where a paper has them, and with your own.

    >>> build("embedding_norm", weight=0.01).weight
    0.01
    """
    return catalog.build("regulariser", MEMBERS, name, settings, preset)
