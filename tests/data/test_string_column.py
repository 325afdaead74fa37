"""Columns of strings and their numbers."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from lookalike.data.string_column import StringColumn
from lookalike.data.vocabulary import Vocabulary, numbered


@given(st.lists(st.text()), st.data())
def test_a_column_gives_back_what_went_in(strings, data):
    column = StringColumn.of(strings)
    assert list(column) == strings
    assert list(pickle.loads(pickle.dumps(column))) == strings
    rows = data.draw(st.lists(st.integers(0, len(strings) - 1))) if strings else []
    assert list(column.take(rows)) == [strings[row] for row in rows]


def test_file_names_that_are_not_text_survive():
    name = b"caf\xe9.jpg".decode("utf-8", "surrogateescape")
    assert StringColumn.of([name])[0] == name


def test_a_row_beyond_the_end_is_an_index_error():
    column = StringColumn.of(["a", "b"])
    assert column[-1] == "b"
    try:
        column[2]
    except IndexError:
        return
    raise AssertionError("no error")


@given(st.lists(st.sampled_from(["", "owl", "hen", "10", "9", "Ä"])))
def test_numbers_and_names_agree_and_do_not_depend_on_the_order(names):
    ids, sorted_names = numbered(names)
    assert [sorted_names[i] if i >= 0 else "" for i in ids.tolist()] == names
    assert numbered(names[::-1])[1] == sorted_names


def test_whole_numbers_sort_as_numbers():
    assert numbered(["10", "9", "100"])[1] == ("9", "10", "100")
    assert numbered(["9" * 5000, "10", "010", "9"])[1] == ("9", "010", "10", "9" * 5000)
    assert Vocabulary().finish()[1] == ()
