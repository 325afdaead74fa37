"""Pairs, Triplets and the drawing of one among many, against definitions in plain Python."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lookalike
from lookalike.choices import pick
from lookalike.label_sets import LabelSets
from lookalike.loss_inputs import slots_of_positives
from lookalike.targets import Pairs, Triplets

labels_lists = st.lists(st.integers(0, 4), min_size=1, max_size=8)


@given(labels_lists)
def test_within(labels):
    pairs = Pairs.within(torch.tensor(labels))
    for i, a in enumerate(labels):
        for j, b in enumerate(labels):
            assert pairs.positive[i, j].item() == (a == b and i != j)
            assert pairs.negative[i, j].item() == (a != b)


@given(labels_lists, labels_lists, st.data())
def test_across(labels, columns, data):
    pairs = Pairs.across(torch.tensor(labels), torch.tensor(columns))
    ids = data.draw(st.lists(st.integers(0, 5), min_size=len(labels), max_size=len(labels)))
    column_ids = data.draw(st.lists(st.integers(0, 5), min_size=len(columns), max_size=len(columns)))
    known = Pairs.across(*(torch.tensor(x) for x in (labels, columns, ids, column_ids)))
    for i, a in enumerate(labels):
        for j, b in enumerate(columns):
            assert pairs.positive[i, j].item() == (a == b)
            assert pairs.negative[i, j].item() == (a != b)
            other = ids[i] != column_ids[j]
            assert known.positive[i, j].item() == (a == b and other)
            assert known.negative[i, j].item() == (a != b and other)
    assert pairs.labels.tolist() == labels
    assert pairs.candidate_labels.tolist() == columns


def test_labels_are_compared_as_integers():
    close = torch.tensor([2**24, 2**24 + 1, 2**53, 2**53 + 1])
    assert not Pairs.within(close).positive.any()
    assert Pairs.within(torch.tensor([200, 200], dtype=torch.uint8)).positive.sum() == 2
    assert Pairs.within(torch.tensor([-1, -1, 1])).positive.sum() == 2


@given(st.integers(0, 500))
def test_slots_are_the_positives_of_every_row(seed):
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(5, 7, generator=generator) < 0.4
    columns, filled = slots_of_positives(Pairs(mask, ~mask))
    for row in range(5):
        assert sorted(columns[row][filled[row]].tolist()) == mask[row].nonzero().flatten().tolist()
    assert columns.shape[1] == max(1, int(mask.sum(1).max()))


def test_pick_is_uniform_among_the_true(generator):
    choices = torch.tensor([[True, False, True, True], [False, True, False, False]]).repeat(6000, 1)
    columns = pick(choices, generator).view(-1, 2)
    assert (columns[:, 1] == 1).all()
    counts = Counter(columns[:, 0].tolist())
    assert set(counts) == {0, 2, 3}
    assert all(abs(count / 6000 - 1 / 3) < 0.03 for count in counts.values())


def test_pick_of_nothing_stays_inside(generator):
    assert pick(torch.zeros(3, 4, dtype=torch.bool), generator).tolist() == [0, 0, 0]


def test_targets_do_not_change():
    pairs = Pairs.within(torch.tensor([0, 1]))
    with pytest.raises(AttributeError):
        pairs.positive = pairs.negative


def test_targets_are_part_of_the_front_door():
    assert lookalike.Pairs is Pairs
    assert lookalike.Triplets is Triplets
    assert lookalike.LabelSets is LabelSets
    assert {"Pairs", "Triplets"} <= set(lookalike.__all__)
