"""A run on a dataset in memory can be repeated with that dataset only."""

import pytest
import torch

from lookalike import data
from lookalike.errors import UserError
from lookalike.fit.choose import choose
from lookalike.recipe import as_tree


def test_its_recipe_does_not_fall_back_on_glyphs():
    ten = data.arrays(torch.randint(0, 255, (40, 20, 20), dtype=torch.uint8), torch.arange(40) // 4)
    _, recipe, _ = choose(ten, None, ["train.steps=2"])
    assert choose(ten, as_tree(recipe), [])[1] == recipe
    with pytest.raises(UserError, match="dataset in memory"):
        choose(None, as_tree(recipe), [])
