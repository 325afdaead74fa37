"""Splits never share a class."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookalike import data
from lookalike.errors import UserError


def labelled(labels, **columns):
    return data.arrays(
        torch.zeros(len(labels), 2, 2, dtype=torch.uint8), [f"{label:03d}" for label in labels], **columns
    )


def sets(dataset):
    return [set(dataset.labels[dataset.splits == split].tolist()) for split in range(3)]


@given(st.lists(st.integers(0, 30), min_size=1), st.integers(2, 5), st.integers(0, 5))
def test_classes_are_disjoint_complete_and_stratified(labels, categories, seed):
    dataset = labelled(labels, categories=[label % categories for label in labels])
    split = data.class_disjoint(dataset, {"train": 0.5, "validation": 0.2, "test": 0.3}, seed=seed)
    train, validation, test = sets(split)
    assert not train & validation
    assert not train & test
    assert not validation & test
    assert train | validation | test == set(dataset.labels.tolist())
    assert abs(len(train) - 0.5 * dataset.classes) <= 1
    assert abs(len(test) - 0.3 * dataset.classes) <= 1
    for category in range(len(dataset.category_names)):
        members = set(dataset.labels[dataset.categories == category].tolist())
        assert abs(len(train & members) - 0.5 * len(members)) <= 1.5


def test_splits_depend_on_the_seed_alone():
    dataset = labelled(range(40))
    shares = {"train": 0.5, "test": 0.5}
    one, again, other = (data.class_disjoint(dataset, shares, seed=seed).splits for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(-1, 8)), min_size=2), st.integers(0, 3))
def test_what_belongs_together_stays_together(rows, seed):
    dataset = labelled([label for label, _ in rows])
    together = torch.tensor([group for _, group in rows])
    split = data.class_disjoint(dataset, {"train": 0.5, "test": 0.5}, seed=seed, together=together)
    for group in range(9):
        assert len(split.splits[together == group].unique()) <= 1
    assert not sets(split)[0] & sets(split)[2]


def test_groups_of_the_dataset_are_respected_by_default():
    dataset = labelled([0, 1, 2, 3], groups=["x", "x", None, "x"])
    split = data.class_disjoint(dataset, {"train": 0.5, "test": 0.5})
    assert len(split.splits[[0, 1, 3]].unique()) == 1


def test_fixed_halves():
    assert data.halves(labelled([0, 1, 2, 3, 4])).splits.tolist() == [0, 0, 2, 2, 2]
    assert data.halves(labelled([0, 1, 2]), train_classes=2).splits.tolist() == [0, 0, 2]


def test_folds_are_contiguous_and_the_first_validates_on_the_last():
    dataset = data.halves(labelled(list(range(16)) * 2))
    folds = data.class_folds(dataset, 4)
    assert [sorted(sets(fold)[1]) for fold in folds] == [[6, 7], [4, 5], [2, 3], [0, 1]]
    for fold in folds:
        assert sets(fold)[0] | sets(fold)[1] == set(range(8))
        assert sets(fold)[2] == set(range(8, 16))


@pytest.mark.parametrize("classes", [5, 7, 10, 98])
def test_folds_of_any_number_cover_every_class_once(classes):
    dataset = data.halves(labelled(range(2 * classes)))
    parts = [sets(fold)[1] for fold in data.class_folds(dataset, 4)]
    assert sorted(label for part in parts for label in part) == list(range(classes))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_the_last_fifth_of_every_category_validates():
    labels = list(range(20))
    dataset = data.halves(labelled(labels, categories=[label // 5 for label in labels]))
    assert sets(data.last_classes_validate(dataset)) == [{0, 1, 2, 3, 5, 6, 7, 8}, {4, 9}, set(range(10, 20))]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda d: data.class_disjoint(d, {"train": 0.5}), "must add up to 1"),
        (lambda d: data.class_disjoint(d, {"trian": 1.0}), "unknown split 'trian'"),
        (lambda d: data.halves(d, train_classes=4), "leave one split empty"),
        (lambda d: data.class_folds(d), "has no splits"),
        (lambda d: data.class_folds(data.halves(d), 3), "3 folds of 2 train classes"),
        (lambda d: data.last_classes_validate(d), "has no splits"),
    ],
)
def test_impossible_splits_are_refused(act, message):
    with pytest.raises(UserError, match=message):
        act(labelled([0, 1, 2, 3]))
