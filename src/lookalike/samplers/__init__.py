"""Batch samplers: which images meet in a batch. Each iterates lists of indices, for `DataLoader(…, batch_sampler=…)`.

All of them compose an epoch from (seed, epoch), share every batch among ranks class by class, and resume in the middle
of an epoch: see `lookalike.samplers.course`.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from lookalike import catalog
from lookalike.samplers.bank import EmbeddingBank
from lookalike.samplers.category_pairs import CategoryPairs
from lookalike.samplers.category_random import CategoryRandom
from lookalike.samplers.class_balanced import ClassBalanced
from lookalike.samplers.class_chunks import ClassChunks
from lookalike.samplers.class_queue import ClassQueue
from lookalike.samplers.class_random import ClassRandom
from lookalike.samplers.coreset import Coreset
from lookalike.samplers.course import Sampler
from lookalike.samplers.d2_coreset import D2Coreset
from lookalike.samplers.distribution_match import DistributionMatch
from lookalike.samplers.frechet import Frechet
from lookalike.samplers.one_per_class import OnePerClass

MEMBERS: Mapping[str, type[Sampler]] = {
    "category_pairs": CategoryPairs,
    "category_random": CategoryRandom,
    "class_balanced": ClassBalanced,
    "class_chunks": ClassChunks,
    "class_queue": ClassQueue,
    "class_random": ClassRandom,
    "coreset": Coreset,
    "d2_coreset": D2Coreset,
    "distribution_match": DistributionMatch,
    "frechet": Frechet,
    "one_per_class": OnePerClass,
}

__all__ = [
    "MEMBERS",
    "CategoryPairs",
    "CategoryRandom",
    "ClassBalanced",
    "ClassChunks",
    "ClassQueue",
    "ClassRandom",
    "Coreset",
    "D2Coreset",
    "DistributionMatch",
    "EmbeddingBank",
    "Frechet",
    "OnePerClass",
    "Sampler",
    "build",
    "names",
    "needs_bank",
]


def names() -> list[str]:
    """The samplers' names on the command line."""
    return sorted(MEMBERS)


def needs_bank(name: str) -> bool:
    """Whether a sampler chooses by embeddings and must be given an EmbeddingBank.

    >>> needs_bank("coreset"), needs_bank("class_balanced")
    (True, False)
    """
    return "bank" in catalog.settings_of(catalog.member("sampler", MEMBERS, name))


def build(
    name: str,
    preset: str | None = None,
    *,
    labels: Tensor,
    categories: Tensor | None = None,
    bank: EmbeddingBank | None = None,
    **settings: Any,
) -> Sampler:
    """The sampler called `name`. Facts of the data that it does not need are left out, unknown settings are refused.

    >>> import torch
    >>> len(build("class_balanced", labels=torch.arange(12) // 3, batch_size=4, per_class=2))
    3
    """
    facts = {"labels": labels, "categories": categories, "bank": bank}
    given = {fact: value for fact, value in facts.items() if value is not None}
    return catalog.build("sampler", MEMBERS, name, given | settings, preset, facts=facts)
