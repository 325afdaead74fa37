"""Answers of several stores as one, and their progress as one."""

from lookalike.search.items import Answer, Hit, Item, Near, Nearest
from lookalike.search.stores.sharded.merging import merged, merged_nearest, summed


def answer(*hits, certified=True):
    return Answer([Hit(Item(name, label=label), value) for name, label, value in hits], certified=certified)


def test_the_best_hits_of_all_come_first_and_ties_by_id():
    answers = [answer(("d", "x", 0.9), ("a", "y", 0.5)), answer(("b", "x", 0.9), ("c", "y", 0.7), certified=False)]
    whole = merged(answers, 3, ["third"])
    assert [hit.id for hit in whole.hits] == ["b", "d", "c"]
    assert (whole.certified, whole.missing) == (False, ("third",))
    assert merged(answers[:1], 3).certified
    near = [Nearest([Near(hit.id, hit.label, hit.similarity) for hit in one.hits], one.certified) for one in answers]
    assert merged_nearest(near, 3, ["third"]) == Nearest(
        [Near("b", "x", 0.9), Near("d", "x", 0.9), Near("c", "y", 0.7)], False, 0, ("third",)
    )


def test_what_a_column_says_of_an_item():
    item = Item("a", "/p", "x", {"price": 3}, "/r", added=7.0)
    columns = ("id", "path", "label", "root", "added", "price", "none")
    assert [item.value(column) for column in columns] == ["a", "/p", "x", "/r", 7.0, 3, None]


def test_progress_of_several_is_their_sum():
    told = []
    one, other = summed(lambda done, total: told.append((done, total)), 2)
    one(1, 10)
    other(2, 5)
    one(10, 10)
    assert told == [(1, 10), (3, 15), (12, 15)]
    assert summed(None, 2) == [None, None]
