"""Shapes are checked while testing: a wrong one is an error, in functions, methods and dataclasses."""

import jaxtyping
import pytest
import torch

from lookalike.geometry import normalise
from lookalike.losses import Triplet
from lookalike.targets import Pairs
from tests.shapes import has_shape


@pytest.mark.parametrize(
    "call",
    [
        lambda: normalise(torch.ones(3), "sphere"),
        lambda: Triplet()(torch.ones(4), torch.arange(4)),
        lambda: Pairs(torch.ones(4), torch.ones(4)),
    ],
)
def test_a_wrong_shape_is_an_error(call):
    with pytest.raises(jaxtyping.TypeCheckError):
        call()


def test_shapes_are_found_within_other_hints():
    rows = jaxtyping.Float[torch.Tensor, "n d"]
    assert all(map(has_shape, [rows, rows | None, tuple[int, list[rows]], "Float[Tensor, ' n']"]))
    assert not any(map(has_shape, [int, torch.Tensor, tuple[int, ...], "Image | None", None]))
