"""Whitening within classes against its definition in numpy."""

import numpy as np
import torch

from lookalike.models.whitening import whitened_axes, whitening

GENERATOR = torch.Generator().manual_seed(0)
POINTS = torch.randn(60, 7, generator=GENERATOR) @ torch.randn(7, 7, generator=GENERATOR)
LABELS = torch.tensor([0] * 20 + [3] * 20 + [4] * 19 + [9])


def within_classes(points, labels):
    """The mean of the covariances of all classes with two or more images."""
    groups = [points[labels == label].numpy().astype(float) for label in labels.unique()]
    return torch.from_numpy(np.mean([np.cov(group.T) for group in groups if len(group) > 1], axis=0))


def test_whitening_undoes_the_covariance():
    covariance = within_classes(POINTS, LABELS)
    shrunk = covariance / (covariance.trace() / 7) + torch.eye(7)
    whiten = whitening(POINTS, LABELS).double()
    assert torch.allclose(whiten @ shrunk @ whiten, torch.eye(7, dtype=torch.float64), atol=1e-5)
    assert torch.allclose(whiten, whiten.T, atol=1e-6)


def test_fewer_images_than_features():
    points = torch.randn(30, 50, generator=GENERATOR)
    labels = torch.arange(30) // 3
    covariance = within_classes(points, labels)
    shrunk = covariance / (covariance.trace() / 50) + torch.eye(50)
    whiten = whitening(points, labels).double()
    assert torch.allclose(whiten @ shrunk @ whiten, torch.eye(50, dtype=torch.float64), atol=1e-5)


def test_without_a_pair_nothing_changes():
    assert torch.allclose(whitening(POINTS, torch.arange(60)), torch.eye(7))


def test_axes_are_the_widest_of_the_whitened_points():
    whiten = whitening(POINTS, LABELS)
    centred = POINTS - POINTS.mean(0)
    spread = (centred @ whitened_axes(centred, whiten, 3).T).var(0)
    expected = torch.linalg.eigvalsh(torch.cov((centred @ whiten).T)).flip(0)[:3]
    assert torch.allclose(spread, expected, rtol=1e-4)
