"""Every recipe of examples/ and papers/: a header that says what it is, known keys, two real steps on a miniature."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lookalike import recipe as recipes
from lookalike.data.formats import vehicle_id
from lookalike.data.formats.arrays import arrays
from lookalike.errors import UserError
from lookalike.fit import fit
from lookalike.recipe.validity import check_recipe
from tests.recipe.layouts import EACH, LAYOUTS, LISTS, TRAIN, Album

ROOT = Path(__file__).parents[2]
PROTOCOLS = sorted(ROOT.glob("papers/*/protocol.toml"))
TRIED_ON = {"roth": "cub200", "ccp": "inshop", "fastap": "sop", "multi_similarity": "cars196", "top_k": "cub200"}
FILES = [*ROOT.glob("examples/*.toml"), *sorted(ROOT.glob("papers/beds/*.toml")), *PROTOCOLS]
every = pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
SMALL = [
    "model.backbone=conv4",
    "model.width=4",
    "model.channels=3",
    "model.weights=none",
    "model.dim=6",
    "images.size=16",
    "images.short_side=18",
    "train.steps=2",
    "train.epochs=none",
    "protocol.seeds=1",
    "protocol.models=1",
    "train.validate_epochs=none",
    "train.validate_every=1",
]

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def album(tmp_path, monkeypatch):
    monkeypatch.setattr(vehicle_id, "VEHICLES", LISTS)
    monkeypatch.setattr(vehicle_id, "TRAIN", [(TRAIN, TRAIN * EACH)])
    return Album(tmp_path / "album")


def header(file: Path) -> str:
    return "\n".join(line for line in file.read_text().splitlines() if line.startswith("#"))


def test_every_paper_has_a_protocol():
    assert {file.parent.name for file in PROTOCOLS} == set(TRIED_ON)


@every
def test_a_header_says_what_how_long_and_what_to_expect(file):
    text = header(file)
    assert f"lookalike train {file.relative_to(ROOT)}" in text
    assert "Time:" in text
    assert "Expected" in text
    optimistic = recipes.load(file).protocol.select == "test_max"
    assert ("Optimistic" in text) == optimistic


@every
def test_no_facts_are_in_a_recipe(file):
    """Numbers of classes come from elsewhere."""
    values = recipes.tree(file)
    assert "classes" not in values["loss"]
    assert "dim" not in values["loss"]


@every
def test_every_setting_in_the_header_is_known(file):
    for setting in re.findall(r"--set ([a-z_]+\.[a-z_]+=[^ ,;#()]+)", header(file)):
        recipes.load(file, [setting])


@every
def test_names_are_known_and_two_steps_are_trained(file, album, tmp_path):
    check_recipe(recipes.load(file))
    dataset = LAYOUTS[recipes.load(file).data.name or TRIED_ON.get(file.parent.name, "")](album)
    batch = 3 * recipes.load(file).sampler.settings.get("per_class", 4)
    changes = [*SMALL, f"sampler.batch_size={batch}"]
    run = fit(dataset, tmp_path / "run", recipe=file, overrides=changes, audit=False, full=False)
    result = json.loads((tmp_path / "run/result.json").read_text())
    assert run.ending.steps == 2
    assert 0 <= run.result["recall@1"] <= 1
    optimistic = "test_max" in file.read_text().split("[images]")[0].split("[protocol]")[-1]
    assert bool(result["results"][0].get("optimistic")) == optimistic


@every
def test_no_embedding_is_wider_than_its_features(file):
    """Directions beyond the features are empty: rho and spectra would measure rounding errors."""
    how = recipes.load(file).model.architecture
    if how.backbone == "conv4":
        assert how.dim <= how.settings.get("width", 64)


def test_mlrc_is_four_models_of_three_seeds():
    file = ROOT / "papers" / "ccp" / "protocol.toml"
    tasks = recipes.protocol.tasks(recipes.load(file, ["protocol.seeds=3"]))
    assert len(tasks) == 12
    folds = {(task.recipe.seed, task.recipe.protocol.fold) for task in tasks}
    assert folds == {(seed, fold) for seed in range(3) for fold in (1, 2, 3, 4)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("protocol.name=cross_validatoin", "did you mean 'cross_validation'"),
        ("protocol.select=best", "unknown protocol.select"),
        ("protocol.folds=1", "at least 2"),
        ("protocol.models=9", "1 to 4"),
        ("protocol.seeds=0", "at least 1"),
        ("protocol.fold=2", "for cross_validation"),
        ("protocol.gallery=one_per_class", "for vehicle_id"),
        ("train.select=recal@1", "unknown metric"),
        ('evaluation.metrics=["nmii"]', "unknown metric"),
    ],
)
def test_impossible_protocols_are_refused_before_an_image_is_read(change, message):
    class Unread:
        def __len__(self):
            return 24

        def open(self, row):
            raise AssertionError(f"image {row} was opened")

        def take(self, _):
            return self

        def name(self, row):
            return str(row)

    dataset = arrays(torch.zeros(24, 8, 8, dtype=torch.uint8), torch.arange(24) // 2)
    values = {
        "loss": {"name": "triplet"},
        "sampler": {"name": "class_balanced", "batch_size": 4},
        "train": {"steps": 1},
    }
    with pytest.raises(UserError, match=re.escape(message)):
        fit(replace(dataset, images=Unread()), "nowhere", recipe=values, overrides=[change])


def test_none_means_nothing_where_nothing_is_possible():
    values = {"loss": {"name": "multi_similarity", "mining_margin": "none"}, "sampler": {"name": "class_balanced"}}
    recipe = recipes.of_tree(values | {"model": {"weights": "none"}, "train": {"patience": "none", "steps": 1}})
    assert recipe.model.weights is None
    assert recipes.build.objective(recipe, 4, 8, 8).loss.mining_margin is None
    values["loss"] = {"name": "n_pair", "normalise": "none"}  # there it is the name of a geometry
    assert recipes.build.objective(recipes.of_tree(values), 4, 8, 8).loss.normalise == "none"
