"""Cells of a table, read as what an index writes into them: SQLite lets a stranger write anything into any column."""

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

import numpy as np
from jaxtyping import Float32

Kinds = tuple[type, ...]
TEXT: Kinds = (str,)
WHOLE: Kinds = (int,)
BYTES: Kinds = (bytes,)
NUMBER: Kinds = (int, float)
MAYBE_TEXT: Kinds = (str, NoneType)
MAYBE_WHOLE: Kinds = (int, NoneType)
VALUES: Mapping[str, Kinds] = {"number": (int, float, NoneType), "text": (int, float, str, NoneType)}
PATH: Kinds = (str, bytes, NoneType)
ITEM = (NUMBER, TEXT, PATH, MAYBE_TEXT, MAYBE_TEXT, MAYBE_WHOLE, MAYBE_WHOLE, MAYBE_TEXT)  # when it was added, FIELDS


def typed(row: Sequence[Any], *kinds: Kinds) -> Sequence[Any]:
    """The row, if its cells have these kinds; a TypeError otherwise, which `explained` looks into."""
    for cell, kind in zip(row, kinds, strict=True):
        if not isinstance(cell, kind):
            raise TypeError(f"a cell holds {str(cell)[:80]!r}")
    return row


def column_of(row: Sequence[Any]) -> Sequence[Any]:
    """Name, position and kind of a column."""
    typed(row, TEXT, WHOLE, TEXT)
    if row[2] not in VALUES:
        raise TypeError(f"a column holds {str(row[2])[:80]!r}")
    return row


def vector_of(cell: Any, dim: int) -> Float32[np.ndarray, " d"]:
    """A vector of so many dimensions."""
    typed((cell,), BYTES)
    vector = np.frombuffer(cell, np.float32)
    if len(vector) != dim:
        raise ValueError(f"a vector has {len(vector)} dimensions")
    return vector
