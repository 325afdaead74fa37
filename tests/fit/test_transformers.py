"""Transformers from a folder through fit, an index and a saved model; what learns beside their layers is resumed."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from lookalike import data
from lookalike.features import CENTRE, View, embed, embed_maps, feature_maps
from lookalike.fit import fit
from lookalike.fit.prepare import train_features
from lookalike.models import Model, up_to
from lookalike.recipe import build, load, of_tree
from lookalike.search import Index
from lookalike.training import Plan, train
from lookalike.training.train import StoppedError
from tests.missing import missing

try:
    import transformers  # noqa: F401
except ImportError:
    missing("transformers is not installed (extra: hf)")

from tests.features.test_maps import Whole, inputs
from tests.fit.stopping import Stop
from tests.fixtures.tiny_networks import write

SHORT = [
    "networks.sizes=[32]",
    "train.suspects=keep",
    "model.dim=8",
    "train.steps=4",
    "train.validate_every=2",
    "train.blend=[0.5]",
    "sampler.batch_size=8",
    "sampler.per_class=2",
    "schedule.warmup=0",
]

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Forty classes of four photos: two colours each, not far from grey, and noise."""
    root, draw = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for name in range(40):
        colours = draw.normal(128, 12, (2, 3))
        for number in range(4):
            folder = root / f"class {name:02d}"
            folder.mkdir(exist_ok=True)
            shifted = colours + draw.normal(0, 8, (2, 3))
            halves = np.repeat(shifted, 24, 0)[:, None] + draw.normal(0, 40, (48, 48, 3))
            Image.fromarray(halves.clip(0, 255).astype(np.uint8)).save(folder / f"{number}.png")
    return root


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dinov2")
    write("dinov2", folder)
    return folder


@pytest.mark.parametrize("kind", ["dinov2", "siglip", "clip", "convnext"])
def test_from_a_folder_to_an_index(pictures, tmp_path, kind):
    write(kind, tmp_path / "source")
    settings = [*SHORT, f"model.backbone=hf:{tmp_path / 'source'}", "model.lora=4", "train.deliver=trained"]
    run = fit(pictures, tmp_path / "run", overrides=settings, audit=False, full=False)
    assert run.content["training"]["steps"] == 4
    (tmp_path / "source").rename(tmp_path / "gone")
    model, photos = Model.load(tmp_path / "run" / "model"), sorted(pictures.glob("class 0[0-3]/*.png"))
    assert model.preprocessing.mean == pytest.approx((127.5, 102.0, 76.5))
    exported = model.encode(photos, backend="onnx")
    torch.testing.assert_close(exported, model.encode(photos), rtol=0, atol=1e-5)
    shop = Index.create(tmp_path / "shop", model=tmp_path / "run" / "model")
    shop.add(pictures)
    assert shop.search(photos[0], k=1).hits[0].label == "class 00"


def test_matrices_learn_merge_and_resume(pictures, source, tmp_path):
    """The first stage is frozen: what is delivered is plain, and a run that was stopped ends as if it had not been."""
    settings = [
        *SHORT,
        f"model.backbone=hf:{source}",
        "model.lora=2",
        "model.pooling=cls_avg",
        "optimiser.lr=0.01",
        "optimiser.stage_decay=0.5",
        "train.deliver=trained",
        "head.steps=3",
        "data.validation=0",
        "train.log_every=1",
        "train.blend=[]",
    ]
    stop = Stop(2)
    whole = fit(pictures, tmp_path / "whole", overrides=settings, audit=False, full=False)
    with pytest.raises(StoppedError):
        fit(
            pictures,
            tmp_path / "again",
            overrides=settings,
            audit=False,
            full=False,
            tell=stop.tell,
            stop=stop,
        )
    again = fit(pictures, tmp_path / "again", overrides=settings, audit=False, full=False, resume=True)
    assert [event["step"] for event in stop.seen] == [1, 2]
    weights = [(run.folder / "model" / "weights.safetensors").read_bytes() for run in (whole, again)]
    assert weights[0] == weights[1]
    state = Model.load(tmp_path / "whole" / "model").embedder.state_dict()
    before = Model.create(Model.load(tmp_path / "whole" / "model").architecture, weights=source).embedder.state_dict()
    changed = {name for name, value in before.items() if not torch.equal(value, state[name])}
    assert state.keys() == before.keys()
    inside = {name for name in changed if name.startswith("backbone.")}
    assert len(inside) == 2 * 6
    assert all(name.endswith("weight") and ".layer." in name for name in inside)
    assert json.loads((tmp_path / "whole" / "result.json").read_text())["training"]["steps"] == 4


def recipe_on_tokens(folder, stage):
    return of_tree(
        {
            "features": {"views": 1, "backend": "torch", "upto": stage, "half": False},
            "images": {"preset": "roth", "size": 32, "short_side": 36},
            "model": {"backbone": f"hf:{folder}", "weights": "pretrained", "dim": 8, "lora": 2},
            "loss": {"name": "multi_similarity"},
            "optimiser": {"lr": 0.01},
            "sampler": {"name": "class_balanced", "batch_size": 8, "per_class": 2},
            "train": {"steps": 6},
        }
    )


@pytest.mark.parametrize(
    ("kind", "stage"),
    [
        ("dinov2", "encoder.layer.0"),
        ("dinov2_with_registers", "encoder.layer.0"),
        ("siglip", "encoder.layers.0"),
        ("clip", "encoder.layers.0"),
        ("convnext", "encoder.stages.2"),
    ],
)
def test_the_last_blocks_learn_on_cached_tokens_what_they_learn_on_images(pictures, tmp_path, kind, stage):
    write(kind, tmp_path / "source")
    recipe = recipe_on_tokens(tmp_path / "source", stage)
    photos = data.decoded(data.folder(pictures), 36).subset(torch.arange(32)).dense()
    weights = []
    for cached in (True, False):
        model = build.model(recipe)
        maps = feature_maps(model, photos, stage, half=False, backend="torch")
        torch.testing.assert_close(embed_maps(model, maps, stage), embed(model, photos), atol=1e-5, rtol=0)
        tokens = train_features(recipe, model, photos)
        build.embedder_of(model).adapt(2, 0)
        loop = build.loop(recipe, model, photos, tokens)
        if not cached:
            views = [CENTRE, View(build.views(recipe, model.preprocessing).train, 1)]
            images = inputs(photos, views, model.preprocessing, recipe.seed)
            loop = replace(loop, network=Whole(model.embedder, 32), dataset=images)
        train(loop, Plan(6, seed=0))
        build.embedder_of(model).merge()
        weights.append(model.embedder.state_dict())
    before, learnt = build.model(recipe).embedder.state_dict(), set()
    for name, value in weights[0].items():
        torch.testing.assert_close(value, weights[1][name], atol=2e-4, rtol=0, msg=name)
        learnt |= set() if torch.equal(value, before[name]) else {name.removeprefix("backbone.network.")}
    frozen = tuple(up_to(stage, build.embedder_of(build.model(recipe)).backbone.stages))
    assert len(learnt) > 3
    assert not any(name.startswith(frozen) for name in learnt)


def test_minutes_and_the_last_blocks_of_a_transformer(pictures, source, tmp_path):
    settings = [*SHORT, f"model.backbone=hf:{source}", "train.minutes=5", "features.upto=encoder.layer.0"]
    run = fit(pictures, tmp_path / "run", overrides=settings, audit=False, full=False)
    recipe = load(tmp_path / "run" / "recipe.toml")
    assert (recipe.features.upto, recipe.model.lora) == ("encoder.layer.0", 8)
    assert run.content["training"]["steps"] == 4
    assert any(row["name"].startswith("trained network") for row in run.content["verdict"]["candidates"])
    vectors = Model.load(tmp_path / "run" / "model").encode(sorted(pictures.glob("*/0.png"))[:2])
    assert vectors.isfinite().all()


def test_size_and_pooling_are_chosen_and_matrices_learn(pictures, source, tmp_path):
    notes = []
    run = fit(
        pictures,
        tmp_path / "run",
        overrides=[*SHORT, "networks.sizes=[32,42]", f"networks.backbones=['hf:{source}']"],
        audit=False,
        full=False,
        tell=lambda event: notes.append(event.get("text", "")),
    )
    rows, recipe = run.content["verdict"]["networks"], load(tmp_path / "run" / "recipe.toml")
    assert {row["size"] for row in rows} == {32, 42}
    assert {row["pooling"] for row in rows} <= {"avg", "cls", "cls_avg"}
    assert recipe.model.architecture.pooling == next(row["pooling"] for row in rows if row["chosen"])
    assert any("matrices of rank 8 learn beside the linear layers" in note for note in notes)
    assert recipe.model.lora == 8
    assert recipe.optimiser.lr > recipe.optimiser.head_lr > 1e-4
