"""Problems of training, named as they happen, each with one sentence of advice.

`Health` looks at a batch's embeddings and their gradient now and then; `unreachable_margin` looks at a loss before the
first step.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.geometry import normalise, norms
from lookalike.training.divergence import ADVICE

ALIKE = 0.98  # mean cosine of different images above which nothing tells them apart
ONE_DIRECTION = 0.98  # share of the spectrum in one singular value, of centred embeddings
EXPLODED = 100.0  # growth of the mean norm since the first check
IDLE = 5  # checks in a row without a gradient


class TrainingProblem(NamedTuple):
    """What is wrong, in a word, and what to do about it, in a sentence."""

    kind: str
    advice: str


NOT_NUMBERS = TrainingProblem("not numbers", f"embeddings or their gradient hold NaN or infinity: {ADVICE}")


@dataclass
class Health:
    """Looks at batches and remembers its findings: each kind of problem is reported once.

    >>> same = torch.ones(8, 4)
    >>> [problem.kind for problem in Health().look(same, same)]
    ['collapse']
    """

    norm: float | None = field(default=None, init=False)
    idle: int = field(default=0, init=False)
    named: set[str] = field(default_factory=set, init=False)

    def look(self, embeddings: Float[Tensor, "n d"], gradient: Float[Tensor, "n d"]) -> list[TrainingProblem]:
        """What is newly wrong with this batch; `gradient` is that of the loss by its `embeddings`."""
        numbers = bool(embeddings.isfinite().all()) and bool(gradient.isfinite().all())
        problems = (
            [self._collapse(embeddings), self._idle(gradient), self._norms(embeddings)] if numbers else [NOT_NUMBERS]
        )
        new = [problem for problem in problems if problem is not None and problem.kind not in self.named]
        self.named.update(problem.kind for problem in new)
        return new

    def state_dict(self) -> dict[str, Any]:
        return {"norm": self.norm, "idle": self.idle, "named": sorted(self.named)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.norm, self.idle, self.named = state["norm"], state["idle"], set(state["named"])

    def _collapse(self, embeddings: Tensor) -> TrainingProblem | None:
        advice = "lower the learning rate, raise the images per class, or choose an easier miner"
        points = normalise(embeddings.float(), "sphere")
        alike = mean_similarity(points)
        if alike > ALIKE:
            return TrainingProblem(
                "collapse", f"all embeddings are nearly the same (mean cosine {alike:.3f}): {advice}"
            )
        values = torch.linalg.svdvals(points - points.mean(0))
        share = float(values[0] / values.sum().clamp(min=1e-12))
        if len(values) > 2 and share > ONE_DIRECTION:
            return TrainingProblem("one direction", f"embeddings vary along one direction only ({share:.0%}): {advice}")
        return None

    def _idle(self, gradient: Tensor) -> TrainingProblem | None:
        self.idle = self.idle + 1 if not bool(gradient.any()) else 0
        if self.idle < IDLE:
            return None
        return TrainingProblem(
            "no active tuples",
            "the loss no longer gives a gradient, all tuples are met: raise its margin, mine harder ones, or stop",
        )

    def _norms(self, embeddings: Tensor) -> TrainingProblem | None:
        norm = float(norms(embeddings.double()).mean())
        if self.norm is None:
            self.norm = max(norm, 1e-6)
        if norm < EXPLODED * self.norm:
            return None
        return TrainingProblem(
            "exploding norms",
            f"embeddings have grown {norm / self.norm:.0f} times longer: "
            "lower the learning rate, clip the gradient, or add the regulariser embedding_norm",
        )


def mean_similarity(points: Float[Tensor, "n d"]) -> float:
    """Mean cosine of different rows of unit vectors."""
    count = len(points)
    if count < 2:
        return 0.0
    return float((points.sum(0).square().sum() - points.square().sum()) / (count * (count - 1)))


MARGINS = ("margin", "negative_margin", "second_margin")


def unreachable_margin(loss: nn.Module) -> TrainingProblem | None:
    """A margin of `loss` that no embedding can meet: classes at opposite poles leave a loss, with a zero margin none.

    >>> from lookalike.losses import Triplet
    >>> unreachable_margin(Triplet(margin=3.0)).advice
    'margin = 3 cannot be met on the sphere, where distances end at 2: lower it, or set normalise="none"'
    >>> unreachable_margin(Triplet(margin=0.2)) is None
    True
    """
    geometry = getattr(loss, "normalise", None)
    if geometry not in ("sphere", "ball"):
        return None
    for name in MARGINS:
        margin = getattr(loss, name, None)
        if isinstance(margin, int | float) and margin > 0 and _at_poles(loss) > 0 and _at_poles(loss, name) == 0:
            return TrainingProblem(
                "unreachable margin",
                f"{name} = {margin:g} cannot be met on the {geometry}, where distances end at 2: "
                'lower it, or set normalise="none"',
            )
    return None


def _at_poles(loss: nn.Module, without: str | None = None) -> float:
    """The loss of a pair and one stranger, as far apart as can be, with one of its margins set to zero."""
    loss = copy.deepcopy(loss).double().cpu()
    if without is not None:
        setattr(loss, without, 0.0)
    dim = next(
        (own.shape[-1] for own in loss.parameters() if own.dim() > 1), 2
    )  # of class weights, where there are any
    poles = torch.tensor([[1.0], [1.0], [-1.0]], dtype=torch.float64) * torch.eye(dim, dtype=torch.float64)[:1]
    with torch.no_grad():
        return float(loss(poles, torch.tensor([0, 0, 1])))
