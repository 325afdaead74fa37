"""A loss without its reduction: the value of every anchor, triplet or pair alone.

A loss is a function of masks, so that an anchor alone is its row of them, and a pair alone is one entry: every loss has
these values, and none needs a setting for them. They cost one call each.
"""

import inspect
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import check
from lookalike.labels import as_labels
from lookalike.loss_inputs import as_pairs, as_triplets, is_labels
from lookalike.targets import Candidates, Classes, Embeddings, Pairs, Similarities, Targets, Triplets


def per_anchor(
    loss: nn.Module, embeddings: Embeddings, targets: Targets, candidates: Candidates = None
) -> Float[Tensor, " values"]:
    """The `loss` of every anchor alone among all candidates, or of every entry of Triplets alone; with gradients.

    Their mean is the value of the loss where that is a mean over anchors with equally many pairs. A loss of whole
    distributions (histogram, vicreg) or of both ends of a pair (lifted_structure) has values of rows, too, but their
    mean is another number. `embeddings`, `targets`, `candidates`: as the loss takes them.

    >>> from lookalike.losses import SupCon
    >>> x, y = torch.randn(6, 4), torch.arange(6) % 3
    >>> torch.allclose(per_anchor(SupCon(), x, y).mean(), SupCon()(x, y))
    True
    """
    rows = embeddings[:, None].unbind()
    columns = embeddings if candidates is None else candidates
    if isinstance(targets, Triplets):
        entries = as_triplets(targets, embeddings, candidates)
        values = [
            loss(rows[anchor], _entry(entries, place), candidates=columns)
            for place, anchor in enumerate(entries.anchor.tolist())
        ]
    elif not _takes_candidates(loss):
        labels = as_labels(targets.labels if isinstance(targets, Classes) else targets)
        check(len(labels) == len(rows), f"{len(labels)} labels for {len(rows)} embeddings: give one per embedding")
        values = [loss(row, label) for row, label in zip(rows, labels[:, None].unbind(), strict=True)]
    else:
        pairs = _pairs(loss, embeddings, targets, candidates)
        everyone = slice(len(columns))
        values = [
            loss(row, _part(pairs, slice(place, place + 1), everyone), candidates=columns)
            for place, row in enumerate(rows)
        ]
    return torch.stack(values) if values else embeddings.sum(1)


def per_pair(loss: nn.Module, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Similarities:
    """The `loss` of every pair alone, anchors × candidates, with gradients; 0 where a pair plays no part.

    For losses in which a pair counts by itself: the contrastive ones, binomial_deviance, siglip. Where it counts only
    against others, alone it is nothing: `lookalike.analysis.pair_weights` says what it does there. `embeddings`,
    `targets`, `candidates`: as the loss takes them.

    >>> from lookalike.losses import Contrastive
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> per_pair(Contrastive(negative_margin=2.0), x, torch.tensor([0, 0, 1])).round(decimals=3)
    tensor([[0.0000, 1.4140, 2.0000],
            [1.4140, 0.0000, 0.5860],
            [2.0000, 0.5860, 0.0000]])
    """
    check(_takes_candidates(loss), f"{type(loss).__name__} compares samples with classes and has no pairs")
    pairs = _pairs(loss, embeddings, targets, candidates)
    rows, columns = (part[:, None].unbind() for part in (embeddings, embeddings if candidates is None else candidates))
    places = (pairs.positive | pairs.negative).nonzero()
    values = [
        loss(rows[i], _part(pairs, slice(i, i + 1), slice(j, j + 1)), candidates=columns[j]) for i, j in places.tolist()
    ]
    nothing = embeddings.sum() * torch.zeros_like(pairs.positive, dtype=embeddings.dtype)
    return nothing.index_put(tuple(places.T), torch.stack(values)) if values else nothing


def _takes_candidates(loss: nn.Module) -> bool:
    return "candidates" in inspect.signature(loss.forward).parameters


def _pairs(loss: Any, embeddings: Tensor, targets: Targets, candidates: Tensor | None) -> Pairs:
    """What the loss works on; drawn by the loss itself where it draws."""
    if hasattr(loss, "targets") and is_labels(targets) and candidates is None:
        targets = loss.targets(targets)
    return as_pairs(targets, embeddings, candidates)


def _part(pairs: Pairs, rows: slice, columns: slice) -> Pairs:
    labels = None if pairs.labels is None else pairs.labels[rows]
    others = None if pairs.candidate_labels is None else pairs.candidate_labels[columns]
    return Pairs(pairs.positive[rows, columns], pairs.negative[rows, columns], labels, others)


def _entry(triplets: Triplets, place: int) -> Triplets:
    """One of the triplets, whose anchor is then the only row."""
    positive, negative, valid = (
        part[place : place + 1] for part in (triplets.positive, triplets.negative, triplets.valid)
    )
    return Triplets(torch.zeros_like(positive), positive, negative, valid, triplets.labels)
