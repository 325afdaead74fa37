"""Whitening within classes: directions in which images of one class differ count less than all others.

W is the mean over classes of the covariance of their centred features, w its mean eigenvalue, P = (W / w + I)^(−½): the
identity keeps P finite where there are fewer images than features ([math D.5]).
"""

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lookalike.models.readout import principal_axes


def _deviations(points: Float[Tensor, "n width"], labels: Integer[Tensor, " n"]) -> Float[Tensor, "n width"]:
    """The points less the mean of their class, so weighted that D'D is W.

    >>> deviations = _deviations(torch.tensor([[0.0], [2.0], [5.0], [5.0], [9.0]]), torch.tensor([0, 0, 1, 1, 2]))
    >>> float((deviations.T @ deviations).round())
    1.0
    """
    _, dense, sizes = torch.unique(labels, return_inverse=True, return_counts=True)
    values = points.double()
    means = torch.zeros(len(sizes), values.shape[1], dtype=values.dtype).index_add(0, dense, values) / sizes[:, None]
    several = int((sizes > 1).sum())
    weights = 1 / ((sizes - 1).clamp(min=1) * max(1, several)).double()
    apart: Tensor = (values - means[dense]) * weights[dense, None].sqrt()
    return apart


def whitening(points: Float[Tensor, "n width"], labels: Integer[Tensor, " n"]) -> Float[Tensor, "width width"]:
    """P, symmetric; the identity where no class has two different images."""
    apart, width = _deviations(points, labels), points.shape[1]
    scale = apart.square().sum() / width
    if scale <= 0:
        return torch.eye(width)
    if len(apart) >= width:
        values, vectors = torch.linalg.eigh(apart.T @ apart / scale)
        result: Tensor = (vectors * (values + 1).rsqrt()) @ vectors.T
    else:  # P is the identity outside of what the few images span, which is much quicker
        _, values, axes = torch.linalg.svd(apart / scale.sqrt(), full_matrices=False)
        result = torch.eye(width, dtype=apart.dtype) + (axes.T * ((values.square() + 1).rsqrt() - 1)) @ axes
    return result.float()


def whitened_axes(
    points: Float[Tensor, "n width"], whiten: Float[Tensor, "width width"], count: int
) -> Float[Tensor, "count width"]:
    """The directions in which whitened points spread most, as directions for points that are not whitened."""
    return principal_axes(points @ whiten, count) @ whiten
