"""Changes to a recipe stick, in whatever order they are written; what would be lost or ignored is refused."""

from itertools import permutations

import pytest

from lookalike.errors import UserError
from lookalike.recipe import build, layered, of_tree, overridden
from lookalike.recipe.validity import check_recipe

RECIPE = {
    "loss": {"name": "multi_similarity", "alpha": 3},
    "miner": {"name": "distance_weighted", "lower_cutoff": 0.4},
    "sampler": {"name": "class_balanced", "batch_size": 8, "per_class": 2},
    "train": {"steps": 1},
}


@pytest.mark.parametrize("order", list(permutations(["loss.margin=0.37", "loss.name=triplet", "loss.squared=true"])))
def test_settings_stick_in_whatever_order_they_are_written(order):
    tables = overridden(RECIPE, order)
    assert tables["loss"] == {"name": "triplet", "margin": 0.37, "squared": True}
    assert build.objective(of_tree(tables), 4, 8, 8).loss.margin == 0.37


def test_a_name_said_twice_is_the_last_one_and_settings_around_it_stick():
    overrides = ["loss.name=contrastive", "loss.margin=0.3", "loss.name=triplet"]
    assert overridden(RECIPE, overrides)["loss"] == {"name": "triplet", "margin": 0.3}


def test_a_whole_table_and_its_keys_are_one_change():
    table = 'loss={name = "triplet", squared = true}'
    for overrides in ([table, "loss.margin=0.3"], ["loss.margin=0.3", table]):
        assert overridden(RECIPE, overrides)["loss"] == {"name": "triplet", "squared": True, "margin": 0.3}
    with pytest.raises(UserError, match="loss is a table, and another --set"):
        overridden(RECIPE, ["loss.margin=0.3", "loss=triplet"])
    with pytest.raises(UserError, match="loss is a value, not a table"):
        overridden(RECIPE, ["loss=triplet", "loss.margin=0.3"])


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["loss.margni=0.3", "loss.name=triplet"], "unknown setting of triplet 'margni': did you mean 'margin'"),
        (["loss.nam=triplet"], "unknown setting of multi_similarity 'nam': did you mean 'name'"),
        (["loss.presett=cub"], "did you mean 'preset'"),
        (["miner.nme=hard"], "unknown setting of distance_weighted 'nme': did you mean 'name'"),
        (["sampler.nam=class_queue"], "unknown setting of class_balanced 'nam': did you mean 'name'"),
        (["optimiser.nam=sgd"], "unknown setting of adam 'nam': did you mean 'name'"),
        (["optimiser.clip_nrom=1"], "did you mean 'clip_norm'"),
        (["model.bakcbone=resnet18"], "unknown setting of conv4 'bakcbone': did you mean 'backbone'"),
        (["model.unfreeze_epochs=1"], "did you mean 'unfreeze_epoch'"),
        (["regularisers.spectral_decay.wieght=1"], "unknown setting of spectral_decay 'wieght': did you mean 'weight'"),
        (["regularisers.spectral_dekay.weight=1"], "unknown regulariser 'spectral_dekay': did you mean 'spectral"),
        (["loss.name=triplet", "loss.margin=wide"], r"loss.margin = 'wide': it must be a number"),
        (["loss.name=triplet", "loss.reduction=summ"], r"unknown loss.reduction 'summ': did you mean 'sum'"),
        (["sampler.per_class=2.5"], r"sampler.per_class = 2.5: it must be a whole number"),
        (["optimiser.betas=[0.9, true]"], r"optimiser.betas = .*: it must be a list"),
        (["sampler.labels=1"], "unknown setting of class_balanced 'labels'"),  # from the data
        (["loss.name=quadruplet", "loss.generator=1"], "unknown setting of quadruplet 'generator'"),  # from the seed
        (["model.pooling=average"], "unknown pooling 'average'"),
    ],
)
def test_what_would_be_ignored_is_refused(overrides, message):
    with pytest.raises(UserError, match=message) as raised:
        check_recipe(of_tree(overridden(RECIPE, overrides)))
    assert "\n" not in str(raised.value)


def test_a_misspelt_name_is_pointed_at_where_no_other_name_is():
    with pytest.raises(UserError, match="unknown key of loss 'nam': did you mean 'name'"):
        of_tree({**RECIPE, "loss": {"nam": "triplet"}})


def test_no_miner_takes_no_settings():
    for overrides in (["miner.name=none"], ["miner=none"]):
        assert "miner" not in overridden(RECIPE, overrides)
    for overrides in (["miner.name=none", "miner.lower_cutoff=0.5"], ["miner.lower_cutoff=0.5", "miner.name=none"]):
        with pytest.raises(UserError, match=r"miner.lower_cutoff is set, but miner.name = none leaves out the miner"):
            overridden(RECIPE, overrides)


def test_settings_of_a_layer_belong_to_its_name_and_without_a_name_to_whatever_is_named():
    triplet = {"loss": {"name": "triplet", "squared": True}}
    assert layered(RECIPE, triplet, {"loss": {"name": "margin"}})["loss"] == {"name": "margin"}
    assert layered(RECIPE, {"loss": {"margin": 0.3}}, triplet)["loss"] == {**triplet["loss"], "margin": 0.3}
    again = layered(RECIPE, {"loss": {"margin": 0.3}}, {"loss": {"name": "triplet", "margin": 0.1}})
    assert again["loss"] == {"name": "triplet", "margin": 0.1}
    renamed = layered(again, {"loss": {"margin": 0.5}}, triplet, {"loss": {"name": "contrastive"}})
    assert renamed["loss"] == {"name": "contrastive", "margin": 0.5}
    assert RECIPE["loss"] == {"name": "multi_similarity", "alpha": 3}  # the original is left alone


def test_a_later_length_replaces_an_earlier_one():
    assert layered(RECIPE, {"train": {"epochs": 2}}, {"train": {"steps": 7}})["train"] == {"steps": 7}
