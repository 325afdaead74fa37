"""Several ranks: equal shares, nothing lost, positives together wherever they fit."""

from hypothesis import given
from hypothesis import strategies as st

from lookalike.samplers.batch_sampler import shares


@given(st.integers(1, 6), st.integers(1, 12), st.data())
def test_shares_are_equal_and_cover_the_batch_once(ranks, size, data):
    classes = data.draw(st.lists(st.integers(0, 7), min_size=ranks * size, max_size=ranks * size))
    dealt = shares(classes, ranks)
    assert [len(part) for part in dealt] == [size] * ranks
    assert sorted(place for part in dealt for place in part) == list(range(ranks * size))


@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 5), st.randoms(use_true_random=False))
def test_equally_large_classes_are_never_cut(ranks, per_rank, per_class, random):
    classes = [label for label in range(ranks * per_rank) for _ in range(per_class)]
    random.shuffle(classes)
    dealt = shares(classes, ranks)
    owners = [{classes[place] for place in part} for part in dealt]
    assert sum(len(owned) for owned in owners) == ranks * per_rank


@given(st.integers(1, 5), st.integers(1, 10), st.data())
def test_fewer_classes_are_cut_than_there_are_ranks(ranks, size, data):
    classes = data.draw(st.lists(st.integers(0, 9), min_size=ranks * size, max_size=ranks * size))
    dealt = shares(classes, ranks)
    homes = [sum(label in {classes[place] for place in part} for part in dealt) for label in set(classes)]
    assert sum(home - 1 for home in homes) < ranks


def test_a_class_goes_where_it_leaves_the_least_room():
    classes = [label for label, size in enumerate([3, 3, 2, 2, 2]) for _ in range(size)]
    owners = [{classes[place] for place in part} for part in shares(classes, ranks=2)]
    assert owners == [{0, 1}, {2, 3, 4}]


def test_a_class_larger_than_a_share_is_cut_and_the_others_are_whole():
    dealt = shares([1, 1, 1, 1, 1, 1, 2, 2], ranks=2)
    assert sorted(len({[1, 1, 1, 1, 1, 1, 2, 2][place] for place in part}) for part in dealt) == [1, 2]
