"""Labels as a user has them, one per item: a tensor, a numpy array or a list, of integers or of names."""

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64
from numpy.typing import NDArray
from torch import Tensor

from lookalike.errors import UserError, check


def as_labels(labels: Any) -> Int64[Tensor, " n"]:
    """Integer labels as int64: compared as integers, so that ids above 2^24 stay apart.

    >>> as_labels([3, 1, 3])
    tensor([3, 1, 3])
    """
    column = _column(labels, "labels")
    if not isinstance(column, Tensor):
        raise UserError(
            f"labels must be integers here, not {type(column[0]).__name__}: number the classes of all the data once, "
            "for example with numpy.unique(labels, return_inverse=True)"
        )
    return column


def joint_labels(*columns: Any, name: str = "labels") -> list[Int64[Tensor, " _"]]:
    """Columns of labels as int64, so that equal labels are equal numbers whichever column they stand in.

    Integers stay as they are; as soon as one column holds names, all columns are numbered together.

    >>> joint_labels(["owl", "hen"], ["hen"])
    [tensor([1, 0]), tensor([0])]
    """
    read = [_column(column, name) for column in columns]
    numbers = [column for column in read if isinstance(column, Tensor)]
    if len(numbers) == len(read):
        return numbers
    codes, _ = encode(*(column.tolist() if isinstance(column, Tensor) else column for column in read))
    return [torch.from_numpy(column) for column in codes]


def _column(labels: Any, name: str) -> Tensor | list[Hashable]:
    """Integers as an int64 tensor, names as a list."""
    if isinstance(labels, Tensor):
        shape = tuple(labels.shape)
        check(labels.dim() == 1, f"{name} must be a vector with one class per sample, not of shape {shape}")
        integral = not (labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool)
        check(integral, f"{name} must be integers, not {labels.dtype}: number the classes and call .long() on them")
        return labels.to(torch.int64)
    values = values_of(labels, name)
    for value in values:
        if value is None or isinstance(value, bool | float | complex):
            raise UserError(f"{name} must be integers or names, not {value!r}: number the classes")
    if not all(isinstance(value, int) for value in values):
        return values
    try:
        return torch.from_numpy(np.array(values, np.int64))
    except OverflowError:  # integers that int64 does not hold are as good as names
        return values


def values_of(labels: Any, name: str, length: int | None = None) -> list[Any]:
    """The labels as a list of values, one per row."""
    check(not isinstance(labels, str), f"{name} must be a sequence with one value per row, not one string")
    if isinstance(labels, Tensor):
        labels = labels.detach().cpu().numpy()
    if isinstance(labels, np.ndarray):
        check(labels.ndim == 1, f"{name} must be a vector, not of shape {labels.shape}")
        labels = labels.tolist()
    check(
        isinstance(labels, Iterable), f"{name} must be a sequence with one value per row, not {type(labels).__name__}"
    )
    values = [value.item() if isinstance(value, np.generic | Tensor) else value for value in labels]
    check(length in (None, len(values)), f"{len(values)} {name} for {length} embeddings: give one each")
    return values


def encode(*columns: Sequence[Hashable]) -> tuple[list[NDArray[np.int64]], list[Hashable]]:
    """Numbers 0, 1, … for the values of all columns together, and the values; in sorted order where they have one.

    >>> encode(["cat", "ant"], ["ant", "bee"])
    ([array([2, 0]), array([0, 1])], ['ant', 'bee', 'cat'])
    """
    names: list[Any] = distinct(value for column in columns for value in column)
    with suppress(TypeError):  # values of different kinds have no order: the order of appearance will do
        names = sorted(names)
    number = {name: code for code, name in enumerate(names)}
    return [np.array([number[value] for value in column], np.int64) for column in columns], names


def distinct(values: Iterable[Hashable]) -> list[Hashable]:
    """Every value once, in the order of appearance."""
    try:
        return list(dict.fromkeys(values))
    except TypeError as error:
        raise UserError(f"labels must be hashable values such as numbers, strings or tuples ({error})") from None
