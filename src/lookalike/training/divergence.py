"""Training that has left the numbers, noticed in the step in which it happens.

A NaN that is not noticed becomes weights, and the weights a checkpoint. Each step looks at the embeddings before the
objective sees them (miners draw from them), at the loss, and at the norm of the gradient before it moves a weight; each
checkpoint at the weights. One norm over the gradient costs less than a hundredth of the step it belongs to.
"""

from collections.abc import Iterable, Mapping

from torch import Tensor, nn

from lookalike.errors import UserError

ADVICE = "lower the learning rate (optimiser.lr) or clip the gradient (optimiser.clip_norm)"


class DivergedError(UserError):
    """Training cannot go on; all that was saved is from before that."""


def diverged(what: str, step: int) -> DivergedError:
    return DivergedError(f"{what} at step {step}: {ADVICE}; whatever was saved is from before that")


def check_outputs(embeddings: Tensor, step: int) -> None:
    """Stop at embeddings that are not numbers."""
    if not bool(embeddings.isfinite().all()):
        raise diverged("the embeddings hold NaN or infinity", step)


def check_terms(terms: Mapping[str, Tensor], step: int) -> None:
    """Stop at a loss that is not a number."""
    for name, value in terms.items():
        if not bool(value.isfinite()):
            raise diverged(f"{name} is {value.item()}", step)


def check_gradient(norm: Tensor, step: int) -> None:
    """Stop at a gradient whose norm is not a number."""
    if not bool(norm.isfinite()):
        raise diverged(f"the norm of the gradient is {norm.item()}", step)


def check_weights(modules: Iterable[nn.Module], step: int) -> None:
    """Stop before weights that are not numbers are saved."""
    for module in modules:
        for name, value in module.state_dict().items():
            if isinstance(value, Tensor) and value.is_floating_point() and not bool(value.isfinite().all()):
                raise diverged(f"{name} holds NaN or infinity", step)


def gradient_norm(parameters: Iterable[nn.Parameter]) -> Tensor:
    """The norm over all gradients.

    >>> weight = nn.Parameter(Tensor([0.0, 0.0]))
    >>> weight.grad = Tensor([3.0, 4.0])
    >>> gradient_norm([weight])
    tensor(5.)
    """
    return nn.utils.get_total_norm([part.grad for part in parameters if part.grad is not None])
