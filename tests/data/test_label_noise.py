"""Wrong labels are ranked first, and their share lies between the bounds."""

import numpy as np
import pytest
import torch

from lookalike.data.audit.label_noise import WrongLabels, label_chances, wrong_labels
from lookalike.data.audit.label_table import doubted
from lookalike.errors import UserError


def images(classes=12, each=20, rate=0.0, seed=0, noise=0.5):
    """Vectors around a centre per class, and labels of which a share is wrong."""
    draw = np.random.default_rng(seed)
    true = np.repeat(np.arange(classes), each)
    vectors = draw.normal(size=(classes, 32))[true] + noise * draw.normal(size=(len(true), 32))
    given = true.copy()
    rows = draw.permutation(len(true))[: round(rate * len(true))]
    given[rows] = (true[rows] + draw.integers(1, classes, len(rows))) % classes
    return torch.from_numpy(vectors.astype(np.float32)), torch.from_numpy(given), torch.from_numpy(given != true)


@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_wrong_labels_come_first_with_the_right_suggestion(rate):
    vectors, given, wrong = images(rate=rate)
    chances = label_chances(vectors, given)
    first = chances.own.argsort()[: int(wrong.sum())]
    assert bool(wrong[first].all())
    assert bool((chances.other[first] == torch.arange(12).repeat_interleave(20)[first]).all())


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3])
def test_the_share_lies_between_the_bounds(rate):
    vectors, given, _ = images(classes=20, each=30, rate=rate)
    share = wrong_labels(vectors, given)
    assert share.low <= rate <= share.high
    assert share.high - share.low < 0.45
    assert wrong_labels(vectors, given) == share


def test_the_bounds_hold_in_nearly_all_draws_of_errors_to_look_alikes():
    missed = 0
    for seed in range(20):
        vectors, true, _ = images(classes=20, each=30, noise=1.0, seed=seed)
        near = label_chances(vectors, true).other
        rows = torch.from_numpy(np.random.default_rng(seed).permutation(600)[:90])
        given = true.clone()
        given[rows] = near[rows]
        share = wrong_labels(vectors, given, seed)
        missed += not share.low <= 0.15 <= share.high
    assert missed <= 1


def test_vectors_that_tell_nothing_say_so():
    vectors, given, _ = images(noise=40)
    share = wrong_labels(vectors, given)
    assert not share.conclusive
    assert "cannot tell" in str(share)
    assert not doubted(label_chances(vectors, given), given, share).any()


def test_no_class_is_doubted_as_a_whole():
    vectors, given, _ = images(classes=4)
    twin = torch.where(given == 3, 2, given)
    vectors[given == 3] = vectors[given == 2] + 0.01  # a class that looks like another one
    assert len(twin.unique()) == 3
    doubts = doubted(label_chances(vectors, given), given, WrongLabels(0.0, 0.45))
    assert all(not bool(doubts[given == label].all()) for label in range(4))


def test_one_class_alone_is_refused():
    with pytest.raises(UserError, match="at least two"):
        label_chances(torch.eye(3), torch.zeros(3, dtype=torch.int64))
