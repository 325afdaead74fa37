"""Conditions on the columns of items: one grammar for the command line and for Python.

`brand=x`, `price<20`, `size=["s", "m"]`, `brand=null`; `{"brand": "x"}`, `{"price": {">=": 5, "<": 20}}`,
`{"size": ["s", "m"]}`, `{"brand": None}`. A column is text or a number; `null` is a missing value. Several conditions
hold together. `sku=12.10` is a number in a column of numbers, and those five signs in a column of texts.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from lookalike.errors import UserError, check, unknown
from lookalike.search.items import Value

Operator = Literal["=", "!=", "<", "<=", ">", ">="]
Kind = Literal["text", "number"]
OPERATORS: tuple[Operator, ...] = ("=", "!=", "<", "<=", ">", ">=")
OPERATOR = re.compile("<=|>=|!=|=|<|>")
NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?")  # what is surely meant as one: 00123 and 1e5 stay text
LONGEST = 2000  # characters of a condition
EXAMPLE = 'brand=x, price<20 or size=["s", "m"]'

Where = Mapping[str, Any] | Sequence[str] | str | None


@dataclass(frozen=True)
class Condition:
    """One column compared with one value, or with any of several (`=` and `!=` only).

    `written`: a number as somebody wrote it, where it is usually written otherwise: 12.10, for a column of texts.
    """

    column: str
    operator: Operator
    values: tuple[Value, ...]
    written: str | None = field(default=None, repr=False)


Filter = tuple[Condition, ...]


def parse(where: Where) -> Filter:
    """The conditions that a user wrote.

    >>> parse("price<=20")
    (Condition(column='price', operator='<=', values=(20,)),)
    >>> parse({"brand": ["x", None]})
    (Condition(column='brand', operator='=', values=('x', None)),)
    """
    if where is None:
        return ()
    if isinstance(where, str):
        return (_from_text(where),)
    if isinstance(where, Mapping):
        return tuple(condition for column, value in where.items() for condition in _from_dict(str(column), value))
    return tuple(_from_text(text) for text in where)


def _from_text(text: str) -> Condition:
    check(len(text) <= LONGEST, f"a condition has at most {LONGEST:,} characters, this one {len(text):,}")
    match = OPERATOR.search(text)
    column = text[: match.start()].strip() if match else ""
    if match is None or not column or "!" in column:
        raise UserError(f"'{text}' is not a condition: write for example {EXAMPLE}")
    written = text[match.end() :].strip()
    value = _value(written)
    condition = _condition(column, match[0], value)
    return replace(condition, written=written) if _is_odd(value, written) else condition


def _value(text: str) -> Any:
    """JSON where it is JSON, else the text itself: 20 is a number, x and 00123 are texts."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _is_odd(value: Any, written: str) -> bool:
    return isinstance(value, int | float) and json.dumps(value) != written


def _from_dict(column: str, value: Any) -> Iterator[Condition]:
    if isinstance(value, Mapping):
        for operator, bound in value.items():
            if operator not in OPERATORS:
                raise unknown(f"operator for '{column}'", str(operator), OPERATORS)
            yield _condition(column, operator, bound)
    else:
        yield _condition(column, "=", value)


def _condition(column: str, operator: str, value: Any) -> Condition:
    several = isinstance(value, list | tuple | set | frozenset)
    values = tuple(value) if several else (value,)
    check(len(values) > 0, f"the condition on '{column}' names no value: write for example {EXAMPLE}")
    for each in values:
        plain = each is None or isinstance(each, str | bool | int | float)
        check(plain, f"the condition on '{column}' compares with {each!r}: give a text, a number or null")
        check(each == each, f"the condition on '{column}' compares with NaN: use null for a missing value")
        check(_storable(each), f"the condition on '{column}' compares with a value that no item can have")
    if operator not in ("=", "!="):
        check(not several and value is not None, f"'{column} {operator}' takes one number or text, not {value!r}")
    return Condition(column, cast(Operator, operator), values)


def _storable(value: Value) -> bool:
    """Whether a store can hold the value: whole numbers of 64 bits, texts without halves of characters."""
    if isinstance(value, str):
        return not any("\ud800" <= sign <= "\udfff" for sign in value)
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def as_sql(conditions: Filter, names: Mapping[str, tuple[str, Kind]], placeholder: str = "?") -> tuple[str, list[Any]]:
    """The conditions as an SQL expression with its parameters; `names` are the physical columns with their kinds.

    >>> as_sql(parse("price<20"), {"price": ("c1", "number")})
    ('c1 < ?', [20])
    """
    clauses, parameters = [], []
    for condition in conditions:
        if condition.column not in names:
            raise unknown("column", condition.column, names)
        physical, kind = names[condition.column]
        values = [_typed(value, kind, condition) for value in condition.values if value is not None]
        clauses.append(_clause(physical, condition, len(values), placeholder))
        parameters += values
    return " AND ".join(clauses) or "1 = 1", parameters


def _typed(value: Any, kind: Kind, condition: Condition) -> str | int | float:
    if kind == "text":
        ordered = condition.operator not in ("=", "!=")
        check(
            isinstance(value, str) or not ordered,
            f"'{condition.column}' holds texts, which are not compared with a number: "
            f'write {condition.column}{condition.operator}"{json.dumps(value)}" to compare them as texts',
        )
        return value if isinstance(value, str) else condition.written or json.dumps(value)
    number = isinstance(value, int | float)
    check(number, f"'{condition.column}' is a number: write for example {condition.column}{condition.operator}20")
    return int(value) if isinstance(value, bool) else cast(float, value)


def _clause(physical: str, condition: Condition, count: int, placeholder: str) -> str:
    if condition.operator not in ("=", "!="):
        return f"{physical} {condition.operator} {placeholder}"
    missing = None in condition.values
    options = [f"{physical} IN ({', '.join([placeholder] * count)})"] if count else []
    options += [f"{physical} IS NULL"] if missing else []
    equal = " OR ".join(options)
    if condition.operator == "=":
        return f"({equal})"
    # a missing value differs from every value that is named
    return f"NOT ({equal})" if missing else f"({physical} IS NULL OR NOT ({equal}))"


def kind_of(value: Value) -> Kind:
    """What a column holds that begins with a value; true and false are texts, as in a table."""
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else "text"


def as_number(text: str) -> float | None:
    """A text as the number that it surely is.

    >>> as_number("12"), as_number("1.50"), as_number("00123")
    (12, 1.5, None)
    """
    if not NUMBER.fullmatch(text):
        return None
    return float(text) if "." in text else int(text)
