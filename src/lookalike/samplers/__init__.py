"""Batch samplers: which images meet in a batch. Each iterates lists of indices, for `DataLoader(…, batch_sampler=…)`.

Each is a function, written like a class, that makes a `BatchSampler` around its own way of composing an epoch. So all
of them compose it from (seed, epoch), share every batch among ranks class by class, and resume in the middle of an
epoch. What they have in common:

`labels`: the class of every image of the data set. `batch_size`: the images of a batch, of all ranks together.
`per_class`: how many of them come from one class. `batches`: the batches of an epoch; None: as many as the images fill.
`seed` decides every choice. `rank`: the number of this process among `ranks`, each of which gets its share of a batch.

Those that choose by embeddings take them from a `bank` and choose within a random `big_batch` of images; those that
compare whole batches draw several `candidates`. `roth` draws with replacement, as the code of Roth et al. does.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from lookalike import catalog
from lookalike.label_sets import Labels
from lookalike.samplers.bank import EmbeddingBank as EmbeddingBank
from lookalike.samplers.batch_sampler import BatchSampler as BatchSampler
from lookalike.samplers.category_pairs import CategoryPairs as CategoryPairs
from lookalike.samplers.category_random import CategoryRandom as CategoryRandom
from lookalike.samplers.class_balanced import ClassBalanced as ClassBalanced
from lookalike.samplers.class_chunks import ClassChunks as ClassChunks
from lookalike.samplers.class_queue import ClassQueue as ClassQueue
from lookalike.samplers.class_random import ClassRandom as ClassRandom
from lookalike.samplers.coreset import Coreset as Coreset
from lookalike.samplers.d2_coreset import D2Coreset as D2Coreset
from lookalike.samplers.distribution_match import DistributionMatch as DistributionMatch
from lookalike.samplers.frechet import Frechet as Frechet
from lookalike.samplers.one_per_class import OnePerClass as OnePerClass

MEMBERS: dict[str, Callable[..., BatchSampler]] = catalog.members(globals())
del MEMBERS["batch_sampler"]  # the class that they all return

_BESIDES = {"MEMBERS", "BatchSampler", "EmbeddingBank", "build", "names", "needs_bank"}
__all__ = sorted(_BESIDES | {make.__name__ for make in MEMBERS.values()})


def names() -> list[str]:
    """The names of all samplers."""
    return sorted(MEMBERS)


def needs_bank(name: str) -> bool:
    """Whether the sampler called `name` chooses by embeddings and so needs an EmbeddingBank.

    >>> needs_bank("coreset"), needs_bank("class_balanced")
    (True, False)
    """
    return "bank" in catalog.settings_of(catalog.member("sampler", MEMBERS, name))


def build(
    name: str,
    preset: str | None = None,
    *,
    labels: Labels,
    categories: Labels | None = None,
    bank: EmbeddingBank | None = None,
    chances: Tensor | None = None,
    **settings: Any,
) -> BatchSampler:
    """The sampler called `name`, with the settings of `preset` where a paper has them; an unknown setting is refused.

    Of the facts of the data (`labels`, `categories`, a `bank` of embeddings, the `chances` of labels) it gets those
    that it takes.

    >>> import torch
    >>> len(build("class_balanced", labels=torch.arange(12) // 3, batch_size=4, per_class=2))
    3
    """
    facts = {"labels": labels, "categories": categories, "bank": bank, "chances": chances}
    known = {fact: value for fact, value in facts.items() if value is not None}
    return catalog.build("sampler", MEMBERS, name, known | settings, preset, facts=facts)
