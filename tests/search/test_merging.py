"""Answers of several stores as one, and their progress as one."""

from lookalike.search.items import Answer, Hit, Item
from lookalike.search.stores.sharded.merging import merged, summed, value_of


def answer(*hits, certified=True):
    return Answer([Hit(Item(name, label=label), value) for name, label, value in hits], certified=certified)


def test_the_best_hits_of_all_come_first_and_ties_by_id():
    answers = [answer(("d", "x", 0.9), ("a", "y", 0.5)), answer(("b", "x", 0.9), ("c", "y", 0.7), certified=False)]
    whole = merged(answers, 3, None, ["third"])
    assert [hit.id for hit in whole.hits] == ["b", "d", "c"]
    assert (whole.certified, whole.missing) == (False, ("third",))
    assert [hit.id for hit in merged(answers, 3, "label").hits] == ["b", "c"]
    assert merged(answers[:1], 3, None).certified


def test_what_a_column_says_of_a_hit():
    hit = Hit(Item("a", "/p", "x", {"price": 3}, "/r", added=7.0), 0.5)
    columns = ("id", "path", "label", "root", "added", "price", "none")
    assert [value_of(hit, column) for column in columns] == ["a", "/p", "x", "/r", 7.0, 3, None]


def test_progress_of_several_is_their_sum():
    told = []
    one, other = summed(lambda done, total: told.append((done, total)), 2)
    one(1, 10)
    other(2, 5)
    one(10, 10)
    assert told == [(1, 10), (3, 15), (12, 15)]
    assert summed(None, 2) == [None, None]
