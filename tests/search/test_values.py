"""Values of types that Python lets through, in ids, columns and k: refused or right, never half."""

from contextlib import closing

import numpy as np
import pytest

from lookalike.errors import UserError
from lookalike.search import Index
from lookalike.search.items import Item

pytestmark = pytest.mark.plain  # shapes and types of arguments are not checked for users
ONE = np.ones((1, 3), np.float32)


@pytest.fixture
def index(new_place):
    with closing(Index.create(new_place(), dim=3)) as made:
        made.store.put([Item("a", columns={"price": 5})], ONE)
        yield made


@pytest.mark.parametrize("value", [[1], {"a": 1}, b"x", np.int64(3), np.array(3), np.bool_(True), 1j, float("inf")])
@pytest.mark.parametrize("column", ["v", "price"])
def test_values_that_no_column_holds(index, column, value):
    with pytest.raises(UserError, match=f"'{column}' of the item 'c' is"):
        index.store.put([Item("b", columns={column: 1}), Item("c", columns={column: value})], np.repeat(ONE, 2, 0))
    assert (len(index), "v" in index.store.columns()) == (1, False)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": 5}, "needs an id"),
        ({"id": None}, "needs an id"),
        ({"id": ""}, "needs an id"),
        ({"id": "b", "label": 5}, "a label is a text"),
        ({"id": "b", "columns": {5: 1}}, "a name"),
    ],
)
def test_names_that_no_item_has(index, fields, message):
    with pytest.raises(UserError, match=message):
        index.store.put([Item(**fields)], ONE)
    assert len(index) == 1


@pytest.mark.parametrize("k", [0, -1, 2.5, 1.0, "3", None, float("nan")])
@pytest.mark.parametrize("group", [None, "label"])
def test_k_is_a_whole_number(index, k, group):
    with pytest.raises(UserError, match="k must be a"):
        index.search(ONE[0], k, group=group)


def test_numbers_and_texts_of_numpy(index):
    assert len(index.search(ONE[0], np.int64(1)).hits) == 1
    index.store.put([Item(np.str_("b"), columns={"price": np.float64(0.5), "t": np.str_("x")})], ONE)
    assert index.store.items(["b"])[0].columns == {"price": 0.5, "t": "x"}
    assert [item.id for item in index.store.listed()] == ["a", "b"]
