"""Wang, Han, Huang, Dong, Scott: Multi-Similarity Loss with General Pair Weighting, CVPR 2019, sec. 3-4
[math I.1, I.2].

Every loss over similarities S moves an embedding as if it were Σ w_ij S_ij with constant weights w = |∂L/∂S|. These are
taken from the loss itself, by differentiating `of_similarities`, with S_ij and S_ji as independent entries (row =
anchor). What a negative pair's weight depends on tells losses apart: its own similarity (S), those of the anchor's
positives (P), those of its other negatives (N).

Departs from the paper: the row N-pairs of its table 1 holds only for the paper's own reading of that loss
[math ERR-39].
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike import losses
from lookalike.errors import check
from lookalike.geometry import compare_with_squares, distances_between
from lookalike.loss_inputs import as_pairs, is_labels
from lookalike.targets import Pairs, Quadruplets, Targets, Triplets

BIN = 1 / 32  # width of a bin of the histogram loss: shifts by it leave that loss as it is
LEARNT = "it compares a sample with learnt vectors of classes, not with other samples"
WITHOUT_EQUATION = "it has no equation of_similarities"
OUTSIDE: dict[type[nn.Module], str] = {
    losses.SNR: "its signal-to-noise ratio is not a function of the similarities",
    losses.Angular: "it adds a loss of unit vectors to one of raw vectors: there is no single similarity matrix",
    losses.CentroidTriplet: "it compares samples with means of samples, whose lengths are no similarity of a pair",
    losses.VICReg: "it looks at the spread of the coordinates, not at pairs alone",
}


def pair_losses() -> list[str]:
    """The losses of the catalogue that are functions of the similarities of pairs.

    >>> "multi_similarity" in pair_losses(), "proxy_anchor" in pair_losses()
    (True, False)
    """
    return [name for name, kind in losses.MEMBERS.items() if not reason_outside(kind)]


def reason_outside(kind: type[nn.Module]) -> str:
    """Why a loss has no pair weights; empty: it has some."""
    if kind in OUTSIDE or hasattr(kind, "of_similarities"):
        return OUTSIDE.get(kind, "")
    return LEARNT if hasattr(kind, "parameter_groups") else WITHOUT_EQUATION


def check_inside(kind: type[nn.Module]) -> None:
    """Refuses a loss that has no pair weights, with the reason."""
    reason = reason_outside(kind)
    check(not reason, f"{kind.__name__} lies outside General Pair Weighting: {reason}")


def pair_gradients(
    loss: nn.Module, embeddings: Float[Tensor, "n d"], targets: Targets, candidates: Float[Tensor, "m d"] | None = None
) -> Float[Tensor, "n m"]:
    """∂L/∂S of every pair, n × m, the lengths of vectors being held constant; a loss that draws tuples draws once.

    `targets`: labels, Pairs or Triplets. `candidates`: the columns, m × d; None: the batch itself.
    """
    of_similarities = _equation(loss)
    with torch.no_grad():
        similarities, lengths = compare_with_squares(embeddings, candidates, loss.normalise)  # type: ignore[arg-type]
    extra: dict[str, Any] = {"lengths": lengths} if "lengths" in inspect.signature(of_similarities).parameters else {}
    fixed = _fixed(loss, embeddings, targets, candidates)
    if isinstance(fixed, Quadruplets) and candidates is not None:
        extra["between"] = _between(loss, fixed, candidates)
    similarities.requires_grad_()
    (gradient,) = torch.autograd.grad(of_similarities(similarities, fixed, **extra), similarities)
    return gradient


def pair_weights(
    loss: nn.Module, embeddings: Float[Tensor, "n d"], targets: Targets, candidates: Float[Tensor, "m d"] | None = None
) -> Float[Tensor, "n m"]:
    """w = |∂L/∂S|: how strongly the loss pulls (positive pairs) or pushes (negative pairs) each pair of the batch.

    `targets` and `candidates` are those of `pair_gradients`.

    >>> pair_weights(losses.CosineContrastive(), torch.eye(3), torch.tensor([0, 0, 1]))
    tensor([[0.0000, 0.3333, 0.0000],
            [0.3333, 0.0000, 0.0000],
            [0.0000, 0.0000, 0.0000]])
    """
    return pair_gradients(loss, embeddings, targets, candidates).abs()


def _equation(loss: nn.Module) -> Any:
    check_inside(type(loss))
    return loss.of_similarities


def _fixed(loss: nn.Module, embeddings: Tensor, targets: Targets, candidates: Tensor | None) -> Any:
    """The targets of `of_similarities`: plain labels become what the loss makes of them."""
    if isinstance(loss, losses.Quadruplet):
        return loss.sampled(embeddings, targets, candidates)
    if isinstance(loss, losses.NPair) and is_labels(targets):
        return loss.targets(targets)
    return as_pairs(targets, embeddings, candidates, or_triplets=True)


def _between(loss: nn.Module, quadruplets: Quadruplets, candidates: Tensor) -> Tensor:
    """The distances of the two foreign classes of a quadruplet: a pair of columns, so it has no entry in S."""
    foreign, other = candidates[quadruplets.triplets.negative], candidates[quadruplets.other]
    geometry: Any = loss.normalise
    return distances_between(foreign, other, geometry).diagonal()


@dataclass(frozen=True)
class Dependence:
    """What the weight of a negative pair depends on.

    itself: S, its own similarity.
    positives: P, those of the anchor's positives.
    negatives: N, those of its other negatives.
    """

    itself: bool
    positives: bool
    negatives: bool


def dependence(
    loss: nn.Module, positives: int = 3, negatives: int = 5, trials: int = 400, generator: torch.Generator | None = None
) -> Dependence:
    """Found by trial: does the weight change when all similarities, the positives', or the rivals' shift?

    `positives` and `negatives`: how many of each the anchor has. Trials in which a shift switches the whole loss off
    are skipped: there every weight is 0.
    """
    check(positives >= 1 and negatives >= 2, "an anchor needs at least 1 positive and 2 negatives to tell them apart")
    equation = _of_one_anchor(loss, positives, negatives)
    everything = torch.ones(positives + negatives, dtype=torch.float64)
    only_positives, only_rivals = everything.clone(), everything.clone()
    only_positives[positives:], only_rivals[: positives + 1] = 0, 0
    changed = [False, False, False]
    for _ in range(trials):
        if all(changed):
            break
        similarities, size = _trial(positives + negatives, generator)
        rows = [_gradient(equation, similarities)]
        rows += [_gradient(equation, similarities + size * who) for who in (everything, only_positives, only_rivals)]
        if all(bool(row.abs().sum() > 0) for row in rows):
            before, *shifted = (float(row[positives]) for row in rows)
            changed = [old or abs(new - before) > 1e-9 for old, new in zip(changed, shifted, strict=True)]
    return Dependence(*changed)


def _trial(count: int, generator: torch.Generator | None) -> tuple[Tensor, float]:
    """Similarities and a shift of any of them that does not lead out of −1 … 1.

    Some trials spread over all of it, where hinges of distances differ; some crowd together, half of these near 1,
    where the narrow ones are.
    """
    size = BIN * int(torch.randint(1, 9, (), generator=generator))
    wide, spread, top, place, turn = torch.rand(5, generator=generator, dtype=torch.float64).tolist()
    width = (2 - size) * (1 if wide < 0.3 else spread * spread)
    start = (2 - size - width) * (1 if top < 0.5 else place) - 1
    similarities = torch.rand(count, generator=generator, dtype=torch.float64) * width + start
    return (similarities + size, -size) if turn < 0.5 else (similarities, size)


def one_anchor(positives: int, negatives: int) -> Pairs:
    """The targets of a single anchor: first its positives, then its negatives."""
    positive = torch.arange(positives + negatives)[None] < positives
    return Pairs(positive, ~positive, torch.zeros(1, dtype=torch.int64))


def one_quadruplet(positives: int) -> Quadruplets:
    """Of the same anchor: its first positive, its first negative, and its second negative as the third class."""
    first = torch.zeros(1, dtype=torch.int64)
    valid = torch.ones(1, dtype=torch.bool)
    return Quadruplets(Triplets(first, first, first + positives, valid), first + positives + 1, valid)


def _of_one_anchor(loss: nn.Module, positives: int, negatives: int) -> Callable[[Tensor], Tensor]:
    equation = _equation(loss)
    if isinstance(loss, losses.Quadruplet):
        quadruplet, apart = one_quadruplet(positives), torch.ones(1, dtype=torch.float64)
        return lambda row: equation(row, quadruplet, between=apart)
    pairs = one_anchor(positives, negatives)
    return lambda row: equation(row, pairs)


def _gradient(equation: Callable[[Tensor], Tensor], similarities: Tensor) -> Tensor:
    row = similarities[None].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(equation(row), row)
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
