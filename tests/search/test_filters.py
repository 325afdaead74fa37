"""Conditions as people write them, and as those write them who want to break something."""

import pytest

from lookalike.errors import UserError
from lookalike.search.filters import LONGEST, Condition, parse


@pytest.mark.parametrize(
    ("text", "column", "operator", "value"),
    [
        ("  price <= 20 ", "price", "<=", 20),
        ("a b=c d", "a b", "=", "c d"),
        ("brand==x", "brand", "=", "=x"),
        ("brand!=null", "brand", "!=", None),
        ("brand=", "brand", "=", ""),
        ("a<>1", "a", "<", ">1"),
        ("id=00123", "id", "=", "00123"),
        ("brand=a!b<c", "brand", "=", "a!b<c"),
        ("\nid\n=\nx\ny", "id", "=", "x\ny"),
    ],
)
def test_grammar(text, column, operator, value):
    assert parse(text) == (Condition(column, operator, (value,)),)


@pytest.mark.parametrize("text", ["", "x", "=x", "  = x", "a!b=1", "!a=1", "a!", " " * LONGEST, "\t" * (LONGEST - 1)])
def test_what_is_not_a_condition(text):
    with pytest.raises(UserError, match="is not a condition"):
        parse(text)


@pytest.mark.parametrize("text", [" " * 100_000, "brand=" + "x" * LONGEST, f"id={'9' * 4000}"])
def test_long_conditions_are_refused_unread(text):
    with pytest.raises(UserError, match="at most 2,000 characters"):
        parse(text)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**100, "\ud800", "x\udfffy"])
def test_values_that_no_store_holds(value):
    with pytest.raises(UserError, match="no item can have"):
        parse({"brand": ["x", value]})


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ({"brand": []}, "names no value"),
        ({"brand": float("nan")}, "use null for a missing value"),
        ({"brand": b"x"}, "give a text, a number or null"),
        ({"price": {"<": [1, 2]}}, "takes one number or text"),
        ({"price": {"<": None}}, "takes one number or text"),
        ({"price": {"<<": 1}}, "operator for 'price'"),
    ],
)
def test_conditions_that_mean_nothing_are_refused(condition, message):
    with pytest.raises(UserError, match=message):
        parse(condition)


def test_the_largest_numbers():
    (condition,) = parse({"price": [2**63 - 1, -(2**63), 1e300, float("inf"), True]})
    assert len(condition.values) == 5
