"""Fuzzed batches: every loss and miner, in every form, geometry and precision. A trial is repeated by its number."""

import random
from pathlib import Path

import numpy as np
import torch

from lookalike import losses, miners
from lookalike.targets import Pairs, Triplets
from tests.attacks.outcomes import Outcomes, SilentError, right
from tests.contracts.catalogue import TAKES_TRIPLETS, needs_classes

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LENGTHS = (0.0, 1e-30, 1e-9, 1.0, 1.0, 1.0, 1e4, 1e15, 1e19, 1e25)
BROKEN = (torch.nan, torch.inf, -torch.inf)
CLASSES = 5
HISTOGRAMS = ("fastap", "histogram")  # of cosines: on the sphere only
# it samples plain labels itself and takes no other pairs
SAMPLED = ("quadruplet",)


class Draw:
    """The random choices of one trial."""

    def __init__(self, number: int) -> None:
        self.chance = random.Random(number)
        self.generator = torch.Generator().manual_seed(number)

    def one(self, choices):
        return self.chance.choice(choices)

    def rows(self, count: int, dim: int, dtype: torch.dtype) -> torch.Tensor:
        """Ordinary, tiny, huge, equal, opposite, zero, one-hot: whatever a network may give."""
        kind = self.one(("normal", "normal", "equal", "opposite", "zeros", "one-hot", "mixed lengths", "near"))
        rows = torch.randn(count, dim, generator=self.generator, dtype=torch.float64)
        if kind == "equal" and count:
            rows = rows[torch.randint(count, (count,), generator=self.generator) // 2]
        elif kind == "opposite":
            rows = rows[:1].expand(count, dim) * (1 - 2 * (torch.arange(count) % 2))[:, None]
        elif kind == "zeros":
            rows = rows * (torch.rand(count, 1, generator=self.generator) < 0.5)
        elif kind == "one-hot":
            rows = torch.eye(dim, dtype=torch.float64)[torch.arange(count) % dim]
        elif kind == "mixed lengths":
            rows = rows * torch.tensor([self.one(LENGTHS) for _ in range(count)], dtype=torch.float64)[:, None]
        elif kind == "near" and count:
            rows = rows[:1] + 1e-7 * rows
        largest = float(torch.finfo(dtype).max) / 16
        return (rows * self.one(LENGTHS)).clamp(-largest, largest).to(dtype)

    def labels(self, count: int) -> torch.Tensor:
        classes = self.one((1, 2, 3, CLASSES))
        return torch.randint(classes, (count,), generator=self.generator)

    def form_of(self, labels: torch.Tensor):
        """The same labels as somebody has them."""
        form = self.one(("tensor", "int32", "list", "array", "names"))
        if form == "tensor":
            return labels
        if form == "int32":
            return labels.int()
        if form == "list":
            return labels.tolist()
        return labels.numpy() if form == "array" else [f"class {label}" for label in labels.tolist()]


def losses_hold(outcomes: Outcomes, first: int, count: int, _: Path) -> None:
    outcomes.attempt_each(first, count, loss_trial)


def loss_trial(number: int) -> None:
    draw = Draw(number)
    name = losses.names()[number % len(losses.names())]
    count, dim, dtype = draw.one((0, 1, 2, 3, 8, 8, 17)), draw.one((2, 3, 8)), draw.one(DTYPES)
    geometry = "sphere" if name in HISTOGRAMS else draw.one((None, "sphere", "ball", "none"))
    settings = {} if geometry is None else {"normalise": geometry}
    torch.manual_seed(number)
    loss = losses.build(name, classes=CLASSES, dim=dim, **settings)
    if name in SAMPLED:
        loss.generator = draw.generator
    if hasattr(loss, "epoch_started"):
        loss.epoch_started(1, draw.generator)
    if draw.chance.random() < 0.3:
        loss = loss.double()
    embeddings, labels = draw.rows(count, dim, dtype), draw.labels(count)
    targets, candidates = targets_of(draw, name, embeddings, labels)
    broken = draw.chance.random() < 0.15 and count > 0
    if broken:
        embeddings[draw.chance.randrange(count), draw.chance.randrange(dim)] = draw.one(BROKEN)
    embeddings.requires_grad_()
    value = loss(embeddings, targets) if candidates is None else loss(embeddings, targets, candidates=candidates)
    check_value(value, embeddings, loss, broken)


def targets_of(draw, name, embeddings, labels):
    if needs_classes(name) or name in ("margin",):
        plain = labels if needs_classes(name) else draw.form_of(labels)
        return (labels.tolist() if draw.chance.random() < 0.3 else plain), None
    form = draw.one(("labels", "labels", "within", "across", "triplets"))
    if form == "triplets" and name in TAKES_TRIPLETS:
        return miners.Random(generator=draw.generator)(embeddings, labels), None
    if name in SAMPLED or form in ("labels", "triplets"):
        return draw.form_of(labels), None
    if form == "within":
        return Pairs.within(draw.form_of(labels)), None
    others = draw.labels(draw.one((0, 1, 5)))
    return Pairs.across(labels, others), draw.rows(len(others), embeddings.shape[1], embeddings.dtype)


def check_value(value, embeddings, loss, broken) -> None:
    right(value.dim() == 0, f"a loss is one number, not of shape {tuple(value.shape)}")
    if broken:
        if not value.isnan():
            raise SilentError(f"{type(loss).__name__} of broken embeddings is {value.item()}")
        return
    if not value.isfinite():
        raise SilentError(f"{loss!r} of finite embeddings is {value.item()}")
    value.backward()
    for part in (embeddings, *loss.parameters()):
        # float16 ends at 65504: a larger gradient is infinite there, which is what gradient scalers look for
        holds = (lambda grad: ~grad.isnan()) if part.dtype == torch.float16 else torch.isfinite
        if part.grad is not None and not holds(part.grad).all():
            raise SilentError(f"{loss!r} has a gradient that is not finite")


def miners_hold(outcomes: Outcomes, first: int, count: int, _: Path) -> None:
    outcomes.attempt_each(first, count, miner_trial)


def miner_trial(number: int) -> None:
    """What is mined is a positive or a negative of its anchor; broken embeddings are refused or survived."""
    draw = Draw(number)
    name = miners.names()[number % len(miners.names())]
    miner = miners.build(name, **({"generator": draw.generator} if hasattr(miners.build(name), "generator") else {}))
    count, dim, dtype = draw.one((0, 1, 2, 8, 8, 21)), draw.one((1, 3, 8)), draw.one(DTYPES)
    embeddings, labels = draw.rows(count, dim, dtype), draw.labels(count)
    if draw.chance.random() < 0.1 and count:
        embeddings[0, 0] = draw.one(BROKEN)
    if draw.chance.random() < 0.3 and name != "switched":
        others = draw.labels(draw.one((0, 1, 6)))
        columns = draw.rows(len(others), dim, dtype)
        check_mined(miner(embeddings, Pairs.across(labels, others), columns), labels, others, apart=False)
    else:
        mined = miner(embeddings, draw.form_of(labels))
        if name == "switched":  # puts positives in the place of negatives
            right(bool((mined.anchor[mined.valid] < count).all()), "an anchor that does not exist")
        else:
            check_mined(mined, labels, labels, apart=True)


def check_mined(mined, labels, others, apart) -> None:
    if isinstance(mined, Triplets):
        anchor, positive, negative = (part[mined.valid] for part in (mined.anchor, mined.positive, mined.negative))
        right(bool((labels[anchor] == others[positive]).all()), "a positive of another class")
        right(bool((labels[anchor] != others[negative]).all()), "a negative of the same class")
        right(not apart or bool((anchor != positive).all()), "an anchor is its own positive")
        return
    same = labels[:, None] == others
    if apart:
        right(not bool(mined.positive.diagonal().any()), "an anchor is its own positive")
    right(not bool((mined.positive & ~same).any()), "a positive of another class")
    right(not bool((mined.negative & same).any()), "a negative of the same class")


def as_array(rows: torch.Tensor) -> np.ndarray:
    return rows.float().numpy() if rows.dtype == torch.bfloat16 else rows.numpy()
