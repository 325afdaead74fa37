"""Which labels are learnt: doubts go where that is seen to help, what a person confirmed stays, groups never judge."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lookalike import data
from lookalike.data.dataset import ORIGINS
from lookalike.errors import UserError
from lookalike.fit import readouts
from lookalike.fit.candidates import Seen
from lookalike.fit.folds import judge_by_folds
from lookalike.fit.taught_labels import DROP, GIVEN, KEEP, WEIGH, decided, doubts_of, once_more, settle
from lookalike.models import Architecture, Model
from lookalike.protocols.class_disjoint import Parts
from lookalike.recipe import of_tree
from lookalike.recipe.validity import check_recipe
from lookalike.runs import RunFolder
from lookalike.runs.log import ignore

TREE = {
    "model": {"backbone": "conv4", "width": 16, "dim": 4, "weights": "pretrained"},
    "loss": {"name": "multi_similarity"},
    "sampler": {"name": "class_balanced", "batch_size": 8, "per_class": 2},
    "train": {"steps": 1, "deliver": "best"},
}
RECIPE = of_tree(TREE)
SHORT = of_tree(TREE | {"train": {"minutes": 3, "deliver": "best"}})  # no time to weigh
ALIKE = of_tree(TREE | {"sampler": {"name": "class_random", "batch_size": 8}})
NO_HEAD = of_tree(TREE | {"model": {name: value for name, value in TREE["model"].items() if name != "dim"}})
CLASSES, EACH = 12, 20
FOUND, CONFIRMED = map(ORIGINS.index, ("found", "confirmed"))


@pytest.fixture
def model():
    return Model.create(Architecture("conv4", {"width": 16}, dim=4), seed=0)


def described(signal=1.0, nuisance=1.0, rate=0.0, seed=0):
    """Points of classes that differ in half of the directions and scatter in the other half; some labels are wrong."""
    draw = np.random.default_rng(seed)
    true = np.repeat(np.arange(CLASSES), EACH)
    points = np.concatenate([signal * draw.normal(size=(CLASSES, 8))[true], np.zeros((len(true), 8))], 1)
    points += np.concatenate([0.3 * draw.normal(size=(len(true), 8)), nuisance * draw.normal(size=(len(true), 8))], 1)
    given, rows = true.copy(), draw.permutation(len(true))[: round(rate * len(true))]
    given[rows] = (true[rows] + draw.integers(1, CLASSES, len(rows))) % CLASSES
    return torch.from_numpy(points.astype(np.float32)), given, torch.from_numpy(given != true)


def seen(labels, origins=None):
    images = data.arrays(np.zeros((len(labels), 4, 4), np.uint8), labels)
    return Seen(replace(images, origins=origins), None)


def test_contradicted_labels_are_unlikely_but_not_confirmed_ones():
    points, given, wrong = described(nuisance=0.1, rate=0.1)
    doubts = doubts_of(seen(given), points)
    assert float(doubts.chances[wrong].quantile(0.9)) < 0.1 < float(doubts.chances[~wrong].quantile(0.1))
    for those in (doubts.contradicted, doubts.doubted):
        assert int((those != wrong).sum()) < 0.2 * int(wrong.sum())
    doubts = doubts_of(seen(given, torch.where(wrong, CONFIRMED, -1)), points)
    assert bool((doubts.chances[wrong] == 1).all())
    assert not ((doubts.contradicted | doubts.doubted) & wrong).any()
    alone = doubts_of(seen(np.zeros(9, np.int64)), points[:9])
    assert bool((alone.chances == 1).all())
    assert not alone.doubted.any()


def test_labels_weigh_where_that_is_better_and_not_where_it_is_not(model, monkeypatch):
    monkeypatch.setattr(readouts, "HEAD", replace(readouts.HEAD, steps=100))
    points, given, _ = described(nuisance=0.5, rate=0.4)
    made = decided(RECIPE, model, seen(given), points)
    assert made["learn"] == WEIGH
    assert made["map@r"][WEIGH] > made["map@r"][KEEP]
    assert made["sentence"].startswith("240 labels are learnt in proportion to their chance; for ")
    confirmed = torch.full((len(given),), CONFIRMED)
    assert decided(RECIPE, model, seen(given, confirmed), points)["learn"] == KEEP
    assert decided(SHORT, model, seen(given), points)["learn"] == KEEP
    points, given, _ = described(signal=2.0, nuisance=2.0, rate=0.3)
    made = decided(ALIKE, model, seen(given), points)
    assert (made["learn"], set(made["map@r"])) == (DROP, {KEEP, DROP})  # this sampler cannot weigh
    assert made["sentence"].startswith("202 labels are learnt, and not 38 that are in doubt: map@r 0.")


def test_groups_are_learnt_where_labels_that_were_given_say_so(model):
    points, true, _ = described()
    origins = torch.where(torch.arange(len(true)) % EACH < 3, -1, FOUND)
    assert decided(NO_HEAD, model, seen(true, origins), points)["learn"] == KEEP
    mixed = true.copy()
    some = (origins == FOUND).numpy()
    mixed[some] = np.random.default_rng(0).permutation(mixed[some])
    made = decided(NO_HEAD, model, seen(mixed, origins), points)
    assert made["learn"] == GIVEN
    assert made["sentence"].startswith("36 given labels are learnt, and not 204 photos in found groups: map@r ")


@pytest.mark.parametrize(
    ("suspects", "words"),
    [("keep", ""), ("weigh", " Their chances weigh them; for "), ("drop", " of them are in doubt and left out.")],
)
def test_groups_are_compared_whatever_becomes_of_suspects(model, suspects, words):
    recipe = replace(NO_HEAD, train=replace(NO_HEAD.train, suspects=suspects))
    points, true, _ = described()
    origins = torch.where(torch.arange(len(true)) % EACH < 3, -1, FOUND)
    mixed, some = true.copy(), (origins == FOUND).numpy()
    mixed[some] = np.random.default_rng(0).permutation(mixed[some])
    for labels, learn in ((true, KEEP), (mixed, GIVEN)):
        made = decided(recipe, model, seen(labels, origins), points)
        assert (made["learn"], made.get("suspects", "keep"), set(made["map@r"])) == (learn, suspects, {GIVEN, KEEP})
        assert words in made["sentence"]
    assert made["sentence"].startswith("36 given labels are learnt, and not 204 photos in found groups: map@r ")


@pytest.mark.usefixtures("own_cache")
def test_suspects_among_given_labels_are_left_out_where_groups_are_not_learnt(parts, model, tmp_path):
    draw, found = np.random.default_rng(0), torch.arange(len(parts.train)) % 2 == 1
    labels = parts.train.labels.clone()
    labels[found] = labels[found][torch.from_numpy(draw.permutation(int(found.sum())))]
    grouped = replace(parts.train, labels=labels, origins=torch.where(found, FOUND, -1))
    for suspects, left in (("keep", 32), ("drop", 31)):
        drop = of_tree(TREE | {"train": TREE["train"] | {"suspects": suspects}})
        run = run_in(tmp_path / suspects)
        run.decisions.make("labels", {"learn": GIVEN, "suspects": suspects, "map@r": {}, "sentence": ""})
        assert len(settle(drop, model, parts._replace(train=grouped), run).train) == left


def test_only_judging_images_are_asked_and_classes_without_one_always_teach():
    labels = torch.arange(10).repeat_interleave(4)
    judging = (torch.arange(40) % 4 < 3) & (labels < 8)
    judged, points = [], torch.eye(10)[labels]

    def vectors(others, own):
        assert not (labels[others].unique()[:, None] == labels[own].unique()).any()
        assert bool(others[labels >= 8].all())
        assert int(others.sum()) + 4 * int(labels[own].unique().numel()) == 40
        judged.append(own)
        return {"": points[own]}

    result = judge_by_folds(labels, 4, 0, vectors, ("recall@1",), judging)[""]
    assert torch.equal(torch.stack(judged).sum(0), judging.long())
    assert len(result.labels) == int(judging.sum())


@pytest.fixture
def parts():
    """Photos of one colour per class with a little noise; two labels of the first class are wrong."""
    draw = np.random.default_rng(0)
    labels = np.repeat(np.arange(12), 8)
    colours = draw.integers(30, 225, (12, 1, 1, 3))[labels]
    pixels = (colours + draw.integers(-20, 20, (96, 32, 32, 3))).clip(0, 255).astype(np.uint8)
    labels[:2] = (5, 7)
    images = data.arrays(pixels, labels)
    return Parts(images.subset(images.labels < 8), images.subset(images.labels >= 8), images)


def run_in(folder):
    folder.mkdir(exist_ok=True)
    return RunFolder(folder).begin("either", "", ignore)


@pytest.mark.usefixtures("own_cache")
def test_a_resumed_run_follows_what_was_decided(parts, model, tmp_path):
    weigh = of_tree(TREE | {"train": TREE["train"] | {"suspects": "weigh"}})
    left = settle(weigh, model, parts, run_in(tmp_path / "run"))
    assert len(left.train.chances) == len(parts.train)
    assert float(left.train.chances[:2].max()) < float(left.train.chances[2:].median())
    assert left.test is parts.test
    again = settle(RECIPE, model, parts, run_in(tmp_path / "run"))  # would choose, but the run has decided
    assert torch.equal(again.train.chances, left.train.chances)
    assert once_more(parts.test, weigh, model, run_in(tmp_path / "run")).chances is not None
    keep = of_tree(TREE | {"train": TREE["train"] | {"suspects": "keep"}})
    assert settle(keep, model, parts, run_in(tmp_path / "other")) is parts


@pytest.mark.usefixtures("own_cache")
def test_labels_in_doubt_are_left_out_of_training_but_validate(parts, model, tmp_path):
    drop = of_tree(TREE | {"train": TREE["train"] | {"suspects": "drop"}})
    left = settle(drop, model, parts, run_in(tmp_path / "run"))
    assert [left.train.class_sizes()[label] for label in (0, 7)] == [6, 8]
    assert len(left.train) == len(parts.train) - 3  # one more looks like another class
    assert left.validation is parts.validation
    confirmed = parts._replace(train=replace(parts.train, origins=torch.full((len(parts.train),), CONFIRMED)))
    assert len(settle(drop, model, confirmed, run_in(tmp_path / "other")).train) == len(parts.train)


def test_what_cannot_weigh_is_refused(parts, model, tmp_path):
    weigh = TREE | {"train": TREE["train"] | {"suspects": "weigh"}}
    bare = {"model": {"backbone": "conv4", "width": 16, "dim": 4}}
    assert settle(of_tree(TREE | bare), model, parts, run_in(tmp_path / "run")) is parts
    for way in ("weigh", "drop"):
        with pytest.raises(UserError, match=rf"train\.suspects={way} doubts labels by the features"):
            check_recipe(of_tree(TREE | {"train": TREE["train"] | {"suspects": way}} | bare))
    with pytest.raises(UserError, match=r"needs sampler\.name=class_balanced: class_random draws all images alike"):
        check_recipe(of_tree(weigh | {"sampler": {"name": "class_random", "batch_size": 8}}))
