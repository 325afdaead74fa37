"""model.head = "saved": a run begins with backbone and head of a saved model."""

import pytest
import torch

from lookalike.errors import UserError
from lookalike.models import Architecture, Model
from lookalike.recipe import build, of_tree
from lookalike.recipe.validity import check_recipe

TABLES = {"loss": {"name": "triplet"}, "sampler": {"name": "class_balanced", "batch_size": 8, "per_class": 2}}


def recipe(weights, head="saved", dim=6):
    model = {"backbone": "conv4", "width": 4, "channels": 1, "dim": dim, "head": head}
    return of_tree({**TABLES, "train": {"steps": 1}, "model": model | ({"weights": str(weights)} if weights else {})})


@pytest.fixture
def folder(tmp_path):
    Model.create(Architecture("conv4", {"width": 4, "channels": 1}, dim=6), seed=5).save(tmp_path / "model")
    return tmp_path / "model"


def test_the_head_is_restored_beside_the_backbone(folder):
    check_recipe(recipe(folder))
    saved, fresh = (
        Model.load(folder).embedder.state_dict(),
        build.model(recipe(folder, "default")).embedder.state_dict(),
    )
    for name, value in build.model(recipe(folder)).embedder.state_dict().items():
        assert torch.equal(value, saved[name])
        assert torch.equal(fresh[name], saved[name]) == (not name.startswith("head."))


@pytest.mark.parametrize(
    ("weights", "dim", "message"), [(None, 6, "must be its folder"), ("same", 5, "of another shape")]
)
def test_what_has_no_such_head_is_refused(folder, weights, dim, message):
    with pytest.raises(UserError, match=message):
        build.model(recipe(weights and folder, dim=dim))
