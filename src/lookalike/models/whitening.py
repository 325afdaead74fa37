"""Whitening within classes: directions in which images of one class differ count less than all others.

W is the mean over classes of the covariance of their centred features, w its mean eigenvalue, P = (W / w + I)^(−½): the
identity keeps P finite where there are fewer images than features ([math D.5]).
"""

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lookalike.models.readout import principal_axes


def within_classes(points: Float[Tensor, "n width"], labels: Integer[Tensor, " n"]) -> Float[Tensor, "width width"]:
    """The mean of the covariances of all classes with two or more images.

    >>> float(within_classes(torch.tensor([[0.0], [2.0], [5.0], [5.0], [9.0]]), torch.tensor([0, 0, 1, 1, 2])).round())
    1.0
    """
    _, dense, sizes = torch.unique(labels, return_inverse=True, return_counts=True)
    values = points.double()
    means = torch.zeros(len(sizes), values.shape[1], dtype=values.dtype).index_add(0, dense, values) / sizes[:, None]
    several = int((sizes > 1).sum())
    weights = 1 / ((sizes - 1).clamp(min=1) * max(1, several)).double()
    deviations = (values - means[dense]) * weights[dense, None].sqrt()
    product: Tensor = deviations.T @ deviations
    return product


def whitening(points: Float[Tensor, "n width"], labels: Integer[Tensor, " n"]) -> Float[Tensor, "width width"]:
    """P, symmetric; the identity where no class has two different images."""
    covariance = within_classes(points, labels)
    scale = covariance.trace() / len(covariance)
    identity = torch.eye(len(covariance), dtype=covariance.dtype)
    values, vectors = torch.linalg.eigh(covariance / scale + identity if scale > 0 else identity)
    result: Tensor = (vectors * values.rsqrt()) @ vectors.T
    return result.float()


def whitened_axes(
    points: Float[Tensor, "n width"], whiten: Float[Tensor, "width width"], count: int
) -> Float[Tensor, "count width"]:
    """The directions in which whitened points spread most, as directions for points that are not whitened."""
    return principal_axes(points @ whiten, count) @ whiten
