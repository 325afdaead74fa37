"""What a default run delivers: always a model, never one worse than what was there, and a verdict that says so."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from lookalike import data
from lookalike.data.dataset import ORIGINS
from lookalike.errors import UserError
from lookalike.evaluation import Result
from lookalike.features import features
from lookalike.fit import fit
from lookalike.fit.best_model import by_folds, choose, doubts
from lookalike.fit.candidates import AS_IT_WAS, TRAINED, Candidate, Seen, Untrained
from lookalike.fit.defaults import default
from lookalike.fit.readouts import FITTED
from lookalike.fit.train_model import weights
from lookalike.fit.verdict import _still_rising, _stronger, _tied
from lookalike.models import Architecture, Model
from lookalike.protocols.class_disjoint import Parts
from lookalike.recipe import of_tree
from tests.cli.photos import folder

# whole trainings: checks of shapes take longer than they do
pytestmark = [pytest.mark.plain, pytest.mark.usefixtures("own_cache")]

TINY = ["images.size=16", "images.short_side=16", "model.width=16", "model.dim=16"]
QUICK = [*TINY, "train.steps=8", "train.validate_every=4", "sampler.batch_size=16", "sampler.per_class=4"]
LONGER = ["train.steps=100", "train.validate_every=50", "sampler.batch_size=32"]


@pytest.fixture(scope="module")
def characters():
    """Forty classes of glyphs in few images: ten of them validate, and a small network learns them in a few steps."""
    glyphs = data.load("glyphs")
    some = glyphs.subset(glyphs.labels % 20 == 0).dense()
    return some.subset(some.labels < 40).dense()


def test_too_few_minutes_still_give_a_model(characters, tmp_path):
    run = fit(characters, tmp_path / "run", overrides=["train.minutes=0.02", *TINY], audit=False)
    verdict = run.content["verdict"]
    assert verdict["delivered"].startswith("raw pixels")  # of a random network nobody has anything
    assert "fine-tuning would need about" in " ".join(verdict["sentences"])
    assert any(line.startswith("more minutes") for line in verdict["next"])
    assert (
        "19 of the 40 classes were set aside for this test; --refit-on-all trains the model once more, on all of them."
        in (verdict["sentences"])
    )
    assert run.content["training"]["steps"] == 0
    assert run.report.is_file()
    images = torch.randint(0, 255, (3, 1, 40, 40), dtype=torch.uint8)
    loaded = Model.load(tmp_path / "run" / "model")
    assert torch.equal(loaded.encode(images), run.model.encode(images))


def test_where_nobody_gave_a_label_the_verdict_begins_with_that(characters, tmp_path):
    found = replace(characters, origins=torch.full((len(characters),), ORIGINS.index("found")))
    run = fit(found, tmp_path / "run", overrides=["train.minutes=0.02", *TINY], audit=False)
    verdict = run.content["verdict"]
    assert verdict["in_words"].startswith("There is nothing to judge by: too few labels were given")
    assert verdict["in_words"] == verdict["sentences"][0] == verdict["warnings"][0]


@pytest.mark.parametrize("minutes", ["0", "-3", "nan", "inf"])
@pytest.mark.parametrize("recipe", [None, {"loss": {"name": "triplet"}, "sampler": {"name": "class_balanced"}}])
def test_bad_minutes_are_refused_before_anything_is_read(tmp_path, minutes, recipe):
    with pytest.raises(UserError, match="positive number of minutes"):
        fit(tmp_path / "nowhere", tmp_path / "run", recipe=recipe, overrides=[f"train.minutes={minutes}"])
    assert not (tmp_path / "run").exists()


def test_a_refused_run_does_not_block_its_folder(characters, tmp_path):
    """A fixed method trains or is refused; the second attempt is refused for the same reason, not for the first one."""
    for _ in range(2):
        with pytest.raises(UserError, match="are too few for ten training steps"):
            fit(characters, tmp_path / "run", overrides=["train.deliver=trained", "train.minutes=0.001"], audit=False)


def test_training_that_helps_is_delivered(characters, tmp_path):
    run = fit(characters, tmp_path / "run", overrides=[*QUICK, *LONGER], audit=False)
    content = run.content
    verdict = content["verdict"]
    assert verdict["delivered"].startswith("trained network")
    assert "Training helped" in " ".join(verdict["sentences"])
    assert any(sentence.startswith("Against raw pixels: recall@1 ") for sentence in verdict["sentences"])
    rows = verdict["candidates"]
    assert [row["name"] for row in rows if row["delivered"]] == [verdict["delivered"]]
    names = {"raw pixels, 256-D", "untrained network, 16-D", "trained network, centred features, 16-D"}
    assert names <= {row["name"] for row in rows}
    assert all(row["bytes_per_item"] == 4 * row["dim"] and row["milliseconds_per_image"] > 0 for row in rows)
    assert all(row["intervals"]["map@r"][0] <= row["metrics"]["map@r"] <= row["intervals"]["map@r"][1] for row in rows)
    assert content["model"]["dim"] == run.model.embedder.dim == run.entries[0].embeddings.shape[1]
    assert "Training helped" in run.report.read_text(encoding="utf-8")


def test_training_that_harms_is_not(characters, tmp_path):
    """Train labels that mean nothing; those of validation and test classes are as they should be."""
    parts = data.class_disjoint(characters, {"train": 0.4, "validation": 0.3, "test": 0.3})
    train = torch.nonzero(parts.splits == 0)[:, 0]
    labels = parts.labels.clone()
    labels[train] = labels[train[torch.randperm(len(train), generator=torch.Generator().manual_seed(0))]]
    wrong = replace(parts, labels=labels)
    run = fit(wrong, tmp_path / "run", overrides=[*QUICK, "optimiser.lr=0.1"], audit=False, full=False)
    verdict = run.content["verdict"]
    assert verdict["delivered"].startswith(("raw pixels", "untrained network"))
    assert "Training did not help" in " ".join(verdict["sentences"])
    assert run.content["training"]["steps"] == 8


def test_training_that_diverges_still_gives_a_model(characters, tmp_path):
    run = fit(characters, tmp_path / "run", overrides=[*QUICK, "optimiser.lr=1e30"], audit=False, full=False)
    assert run.content["verdict"]["delivered"].startswith("raw pixels")
    assert any("lower" in sentence for sentence in run.content["verdict"]["sentences"])
    assert (tmp_path / "run" / "model" / "model.json").is_file()


def test_folds_too_small_for_a_reading_leave_it_out():
    """A head of 16 dimensions on 24 images: all of them can fit it, a half cannot."""
    recipe = of_tree(
        {
            "model": {"backbone": "conv4", "width": 16, "dim": 16, "weights": "pretrained"},
            "loss": {"name": "multi_similarity"},
            "sampler": {"name": "class_balanced", "batch_size": 8, "per_class": 2},
            "train": {"steps": 1, "deliver": "best", "minutes": 1},
        }
    )
    glyphs = data.load("glyphs")
    few = glyphs.subset(torch.cat([torch.nonzero(glyphs.labels == label)[:3, 0] for label in range(8)])).dense()
    model = Model.create(Architecture("conv4", {"channels": 1, "width": 16}, dim=16))
    candidates = Untrained(recipe, model, Seen(few, None), features(model, few), weights(model)).candidates()
    names = [each.name for each in candidates]
    assert "frozen features, whitened features, 16-D" in names
    assert not any("head" in name for name in names)
    assert choose(candidates, by_folds) in candidates


def test_a_report_without_map_at_r(characters, tmp_path):
    run = fit(characters, tmp_path / "run", overrides=[*QUICK, 'evaluation.metrics=["recall@1"]'], audit=False)
    assert {row["metric"] for row in run.content["differences"]} == {"recall@1"}


def test_most_dimensions(characters, tmp_path):
    run = fit(characters, tmp_path / "run", overrides=[*QUICK, "train.dim=12", "model.dim=12"], audit=False, full=False)
    assert run.model.embedder.dim <= 12
    assert json.loads((tmp_path / "run" / "model" / "model.json").read_text())["dim"] <= 12


def candidate(name, complexity, values, dim=8, recall=0.5):
    """A candidate with these values of map@r, one per class of four queries."""
    labels = [number for number in range(len(values)) for _ in range(4)]
    queries = np.repeat(np.array(values, dtype=float), 4)
    recall = np.full(len(labels), recall)
    result = Result(
        {"map@r": float(queries.mean()), "recall@1": float(recall.mean())},
        {"map@r": queries, "recall@1": recall},
        labels,
        {},
    )
    return Candidate(name, complexity, dim, 1.0, result, lambda: None)


def test_ties_go_to_what_was_there():
    had = candidate("had", AS_IT_WAS, [0.5] * 10)
    luck = candidate("luck", TRAINED, [0.9, *[0.5] * 8, 0.2])
    sure = candidate("sure", TRAINED, [0.55] * 10)
    assert choose([had, luck]) is had
    assert choose([had, luck, sure]) is sure
    assert choose([had, candidate("worse", FITTED, [0.4] * 10)]) is had
    assert choose([had, candidate("forgets", TRAINED, [0.6] * 10, recall=0.48)]) is had


def test_dimensions_that_do_not_pay_are_left_out():
    had = candidate("had", AS_IT_WAS, [0.1] * 10)
    wide = candidate("wide", TRAINED, [0.500] * 10, dim=1280)
    assert choose([had, wide, candidate("narrow", TRAINED, [0.497] * 10, dim=64)]).name == "narrow"
    assert choose([had, wide, candidate("narrow", TRAINED, [0.490] * 10, dim=64)]).name == "wide"
    assert choose([had, wide, candidate("narrow", TRAINED, [0.497] * 10, dim=64, recall=0.48)]).name == "wide"


def test_doubts(characters):
    three = Parts(characters, characters.subset(characters.labels < 3), characters)
    enough = Parts(characters, characters, characters)
    good, better = [candidate("one", AS_IT_WAS, [0.99] * 3)], [candidate("other", TRAINED, [1.0] * 3)]
    assert any("saturated" in warning for warning in doubts(good, better, three))
    assert any("3 held-out classes can tell only" in warning for warning in doubts(good, better, three))
    assert doubts([candidate("one", AS_IT_WAS, [0.5] * 3)], [], enough) == []


@pytest.mark.parametrize(("classes", "held"), [(24, 4 / 12), (60, 10 / 30), (12, 2 / 6), (400, 0.1)])
def test_few_classes_hold_back_more_for_validation(tmp_path, classes, held):
    few = data.load(folder(tmp_path / "photos", classes=classes, each=2, side=8))
    assert default(few)["data"]["validation"] == pytest.approx(held, abs=1e-3)


def test_a_stronger_network_is_named_with_what_is_published_of_it(monkeypatch):
    recipe = of_tree(
        {
            "model": {"backbone": "efficientnet_lite2", "weights": "pretrained"},
            "loss": {"name": "triplet"},
            "sampler": {"name": "class_balanced"},
        }
    )
    here = {"efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2"}
    monkeypatch.setattr("lookalike.fit.verdict.available", lambda name: name in here)
    (advice,) = _stronger(recipe)
    assert "lookalike backbones fetch dinov2_small: on ImageNet k-NN 79.0%, linear 81.1%" in advice
    assert "against 77.6%, all published" in advice
    here |= {"dinov2_small", "dinov2_base"}
    assert _stronger(recipe) == []
    here -= {"efficientnet_lite2"}
    recipe = replace(recipe, model=replace(recipe.model, architecture=Architecture("efficientnet_lite1")))
    assert "adds efficientnet_lite2, 77.6% against 76.8% on ImageNet (published)" in _stronger(recipe)[0]


def test_more_minutes_are_advised_where_validation_still_rose():
    looks = [{"step": 0, "map@r": 0.3}, {"step": 50, "map@r": 0.35}, {"step": 100, "map@r": 0.362}]
    assert _still_rising(looks) == [
        "more minutes: validation map@r still rose by 0.012 in the last 50 steps (measured)"
    ]
    assert _still_rising(looks[:1]) == _still_rising([*looks, {"step": 150, "map@r": 0.3621}]) == []


def test_ties_are_those_of_the_nearest_neighbours():
    points = torch.randn(300, 64, generator=torch.Generator().manual_seed(0))
    assert _tied(points) == 0
    assert _tied(torch.cat((points, points, points))) == 1
    assert _tied(points[:2]) == 0
