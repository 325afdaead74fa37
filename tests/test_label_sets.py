"""Several labels per item, or none: every mask against its definition in plain Python."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookalike.errors import UserError
from lookalike.label_sets import LabelSets, several
from lookalike.targets import Pairs, Triplets

sets_of_labels = st.lists(st.sets(st.sampled_from("abcd"), max_size=3), min_size=1, max_size=7)


@given(sets_of_labels)
def test_samples_that_share_a_label_are_positives(labels):
    pairs = Pairs.within(labels)
    for i, a in enumerate(labels):
        for j, b in enumerate(labels):
            assert pairs.positive[i, j].item() == (bool(a & b) and i != j)
            assert pairs.negative[i, j].item() == (not a & b and i != j)
    assert pairs.labels is None
    assert pairs.candidate_labels is None


@given(sets_of_labels, sets_of_labels)
def test_across_samples_and_candidates(labels, columns):
    pairs = Pairs.across(labels, columns)
    assert pairs.positive.tolist() == [[bool(a & b) for b in columns] for a in labels]
    assert torch.equal(pairs.negative, ~pairs.positive)


@given(sets_of_labels)
def test_all_forms_of_sets_are_one(labels):
    letters = "abcd"
    matrix = np.array([[letter in row for letter in letters] for row in labels])
    forms = [
        [list(row) for row in labels],
        [frozenset(row) for row in labels],
        [row or None for row in labels],
        matrix,
        torch.from_numpy(matrix),
        np.array([frozenset(row) for row in labels], object),
        LabelSets.of(labels),
    ]
    for form in forms:
        assert several(form) or not any(isinstance(value, frozenset) for value in form)
        assert torch.equal(Pairs.within(form).positive, Pairs.within(labels).positive)
        assert torch.equal(Pairs.within(form).negative, Pairs.within(labels).negative)
    shared = LabelSets.of(labels).shared(LabelSets.of(labels))
    assert shared.tolist() == [[len(a & b) or int(i == j) for j, b in enumerate(labels)] for i, a in enumerate(labels)]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8))
def test_sets_of_one_are_plain_labels(labels):
    plain, sets = Pairs.within(torch.tensor(labels)), Pairs.within([{label} for label in labels])
    assert torch.equal(plain.positive, sets.positive)
    assert torch.equal(plain.negative, sets.negative)


def test_a_tuple_stays_one_label():
    assert not several([("red", "round"), ("red",)])
    assert not Pairs.within([("red", "round"), ("red",)]).positive.any()


def test_an_unlabelled_item_is_like_its_own_other_view_only():
    sets = LabelSets.of([{"red"}, None, None, {"red"}])
    batch = Pairs.within(sets[torch.tensor([0, 1, 1, 2, 3])])
    assert batch.positive.nonzero().tolist() == [[0, 4], [1, 2], [2, 1], [4, 0]]
    assert torch.equal(batch.negative, ~(batch.positive | torch.eye(5, dtype=torch.bool)))
    views = Pairs.of_views(3)
    assert views.positive.nonzero().tolist() == [[0, 3], [1, 4], [2, 5], [3, 0], [4, 1], [5, 2]]
    assert int(views.negative.sum()) == 24


def test_where_differences_are_listed_other_pairs_are_unknown():
    sets = LabelSets(torch.tensor([[0, 4], [1, 4], [2, -1], [3, -1]]), opposed=torch.tensor([[2, 0]]))
    pairs = Pairs.within(sets)
    assert pairs.positive.nonzero().tolist() == [[0, 1], [1, 0]]
    assert pairs.negative.nonzero().tolist() == [[0, 2], [2, 0]]
    some = Pairs.across(sets[[2, 0]], sets[[0, 1, 3]])
    assert some.negative.tolist() == [[True, False, False], [False, False, False]]


def test_kinds_number_the_different_sets():
    sets = LabelSets.of([{"red", "round"}, None, {"round", "red"}, {"red"}, None])
    kinds, table = sets.kinds()
    assert len(table) == 4
    assert torch.equal(Pairs.within(table[kinds]).positive, Pairs.within(sets).positive)
    assert table[kinds].texts() == ["red|round", "", "red|round", "red", ""]


pairs_of = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda p: p[0] != p[1]), max_size=6)


@given(pairs_of, st.one_of(st.none(), pairs_of))
def test_listed_pairs_count_in_both_directions(positive, negative):
    both = {*positive, *((b, a) for a, b in positive)}
    against = {*(negative or []), *((b, a) for a, b in negative or [])}
    if both & against:
        with pytest.raises(UserError, match="both as positive and as negative"):
            Pairs.listed(positive, negative, rows=5)
        return
    pairs = Pairs.listed(positive, negative, rows=5)
    for i in range(5):
        for j in range(5):
            assert pairs.positive[i, j].item() == ((i, j) in both)
            other = (i, j) not in both and i != j if negative is None else (i, j) in against
            assert pairs.negative[i, j].item() == other


def test_listed_pairs_with_candidates_count_as_they_are():
    pairs = Pairs.listed(torch.tensor([[0, 2]]), rows=2, columns=3)
    assert pairs.positive.tolist() == [[False, False, True], [False, False, False]]
    assert torch.equal(pairs.negative, ~pairs.positive)
    triplets = Triplets.listed([(1, 2, 0)], rows=2, columns=3)
    assert (triplets.anchor.item(), triplets.positive.item(), triplets.negative.item()) == (1, 2, 0)
    assert triplets.valid.all()
    assert not len(Triplets.listed([], rows=2).anchor)


def test_masks_of_a_batch_lose_their_diagonal():
    mask = torch.ones(2, 2, dtype=torch.bool)
    pairs = Pairs.masked(mask)
    assert pairs.positive.tolist() == [[False, True], [True, False]]
    assert not pairs.negative.any()
    assert mask.all()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Pairs.listed([(0, 5)], rows=5), "an index is not among the 5 samples: indices run from 0 to 4"),
        (lambda: Pairs.listed([(0, -1)], rows=5), "an index is not among the 5 samples: indices run from 0 to 4"),
        (lambda: Triplets.listed([(0, 1)], rows=5), "give one row of 3 indices each"),
        (lambda: Pairs.masked(torch.ones(2, 3, dtype=torch.bool)), "the masks of a batch are square"),
        (lambda: Pairs.across(LabelSets.of([{1}]), LabelSets.of([{1}])), "rows of the same LabelSets"),
        (lambda: Pairs.across(LabelSets.of([{1}]), [{1}]), "rows of the same LabelSets"),
    ],
)
def test_mistakes_are_one_line(act, message):
    with pytest.raises(UserError, match=message) as error:
        act()
    assert "\n" not in str(error.value)


def test_of_an_unsure_number_only_listed_pairs_are_different():
    sets = LabelSets(torch.arange(4)[:, None], ("a", "b", "c", "query"), torch.tensor([[3, 1]]), torch.tensor([3]))
    assert sets.opposes(sets).int().tolist() == [[0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 0]]
    assert sets[[3]].opposes(sets[[0, 1]]).tolist() == [[False, True]]
