"""Wang, Han, Huang, Dong, Scott: Multi-Similarity Loss with General Pair Weighting, CVPR 2019, sec. 3-4; SPEC I.1, I.2.

Every loss over similarities S moves an embedding as if it were Σ w_ij S_ij with constant weights w = |∂L/∂S|. These are
taken from the loss itself, by differentiating `of_similarities`, with S_ij and S_ji as independent entries (row =
anchor). What a negative pair's weight depends on tells losses apart: its own similarity (S), those of the anchor's
positives (P), those of its other negatives (N).

Departs from the paper: the row N-pairs of its table 1 holds for the paper's own reading of that loss only (ERR-39).
"""

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike import losses
from lookalike.errors import UserError, check
from lookalike.geometry import compare, squares
from lookalike.targets import Pairs, Targets, as_pairs_or_triplets

BIN = 1 / 32  # width of a bin of the histogram loss: shifts by it leave that loss as it is


def pair_gradients(
    loss: nn.Module, embeddings: Float[Tensor, "n d"], targets: Targets, candidates: Float[Tensor, "m d"] | None = None
) -> Float[Tensor, "n m"]:
    """∂L/∂S of every pair, the lengths of vectors being held constant; tuples are drawn once where the loss draws."""
    of_similarities = _equation(loss)
    with torch.no_grad():
        similarities = compare(embeddings, candidates, loss.normalise)  # type: ignore[arg-type]
        lengths = squares(embeddings, candidates, loss.normalise)  # type: ignore[arg-type]
    extra = {"lengths": lengths} if "lengths" in inspect.signature(of_similarities).parameters else {}
    fixed = _fixed(loss, embeddings, targets, candidates)
    similarities.requires_grad_()
    (gradient,) = torch.autograd.grad(of_similarities(similarities, fixed, **extra), similarities)
    return gradient


def pair_weights(
    loss: nn.Module, embeddings: Float[Tensor, "n d"], targets: Targets, candidates: Float[Tensor, "m d"] | None = None
) -> Float[Tensor, "n m"]:
    """w = |∂L/∂S|: how strongly the loss pulls (positive pairs) or pushes (negative pairs) each pair of the batch.

    >>> pair_weights(losses.CosineContrastive(), torch.eye(3), torch.tensor([0, 0, 1]))
    tensor([[0.0000, 0.3333, 0.0000],
            [0.3333, 0.0000, 0.0000],
            [0.0000, 0.0000, 0.0000]])
    """
    return pair_gradients(loss, embeddings, targets, candidates).abs()


def _equation(loss: nn.Module) -> Any:
    equation = getattr(loss, "of_similarities", None)
    if equation is None:
        raise UserError(
            f"{type(loss).__name__} lies outside General Pair Weighting: it is no function of the similarities of pairs"
        )
    return equation


def _fixed(loss: nn.Module, embeddings: Tensor, targets: Targets, candidates: Tensor | None) -> Any:
    """The targets of `of_similarities`: plain labels become what the loss makes of them."""
    if isinstance(loss, losses.Quadruplet):
        return loss.sampled(embeddings, targets, candidates)
    if isinstance(loss, losses.NPair) and isinstance(targets, Tensor):
        return loss.targets(targets)
    return as_pairs_or_triplets(targets, embeddings, candidates)


@dataclass(frozen=True)
class Dependence:
    """What the weight of a negative pair depends on: itself, the anchor's positives, its other negatives."""

    itself: bool  # S
    positives: bool  # P
    negatives: bool  # N


def dependence(
    loss: nn.Module,
    positives: int = 3,
    negatives: int = 5,
    trials: int = 400,
    generator: torch.Generator | None = None,
) -> Dependence:
    """Finds out by trying: does the weight change when all similarities, the positives', or the rivals' shift?

    Trials in which some shift switches the whole loss off are passed over: there every weight is 0.
    """
    check(positives >= 1 and negatives >= 2, "an anchor needs at least 1 positive and 2 negatives to tell them apart")
    equation = _equation(loss)
    pairs = _one_anchor(positives, negatives)
    everything = torch.ones(positives + negatives, dtype=torch.float64)
    only_positives, only_rivals = everything.clone(), everything.clone()
    only_positives[positives:], only_rivals[: positives + 1] = 0, 0
    changed = [False, False, False]
    for _ in range(trials):
        similarities = torch.rand(positives + negatives, generator=generator, dtype=torch.float64) - 0.5
        size = BIN * int(torch.randint(1, 9, (), generator=generator))
        rows = [_gradient(equation, pairs, similarities)]
        rows += [
            _gradient(equation, pairs, similarities + size * who) for who in (everything, only_positives, only_rivals)
        ]
        if all(bool(row.abs().sum() > 0) for row in rows):
            usual, *shifted = (float(row[positives]) for row in rows)
            changed = [old or abs(new - usual) > 1e-9 for old, new in zip(changed, shifted, strict=True)]
    return Dependence(*changed)


def _one_anchor(positives: int, negatives: int) -> Pairs:
    positive = torch.arange(positives + negatives)[None] < positives
    return Pairs(positive, ~positive, torch.zeros(1, dtype=torch.int64))


def _gradient(equation: Any, pairs: Pairs, similarities: Tensor) -> Tensor:
    row = similarities[None].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(equation(row, pairs), row)
    return gradient[0]


def similarity_types(trials: int = 400, generator: torch.Generator | None = None) -> dict[str, Dependence]:
    """Table 1 of the paper, measured on our own losses."""
    several: dict[str, nn.Module] = {
        "Contrastive": losses.Contrastive(similarity="cosine", threshold=0.1),
        "Binomial": losses.BinomialDeviance(),
        "Triplet": losses.Triplet(similarity="cosine", reduction="sum"),
        "Histogram": losses.Histogram(nodes=65),
        "Lifted": losses.GeneralisedLifted(similarity="cosine"),
        "BinLifted": losses.BinLifted(),
        "NCA": losses.NCA(),
        "MS": losses.MultiSimilarity(),
        "MS weighting": losses.MultiSimilarity(mining_margin=None),
        "MS mining": losses.MultiSimilarity(weighting=False),
    }
    single: dict[str, nn.Module] = {
        "N-pairs (as read in the paper)": losses.NPair(reading="lifted"),
        "N-pairs (as published)": losses.NPair(normalise="sphere"),
    }
    table = {name: dependence(loss, trials=trials, generator=generator) for name, loss in several.items()}
    table |= {name: dependence(loss, 1, trials=trials, generator=generator) for name, loss in single.items()}
    return table
