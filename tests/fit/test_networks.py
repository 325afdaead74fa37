"""Network and size are measured on train classes; what pays is taken, said, and followed by a resumed run."""

import json

import numpy as np
import pytest
from PIL import Image

from lookalike.errors import UserError
from lookalike.fit import fit
from lookalike.fit.choose import choose
from lookalike.fit.networks import NetworkAtSize, at, cells
from lookalike.models import Model
from lookalike.recipe import build, load, of_tree
from lookalike.training.train import StoppedError
from tests.fit.stopping import Stop

SHORT = [
    "model.width=8",
    "model.dim=8",
    "train.steps=2",
    "train.validate_every=2",
    "sampler.batch_size=8",
    "sampler.per_class=2",
]
SIZES = "networks.sizes=[16,28]"

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def fine(tmp_path_factory):
    """Classes that differ in neighbouring pixels: at half the size all images are nearly grey."""
    return pictures(tmp_path_factory.mktemp("fine"), 1)


def pictures(root, scale, alike=False):
    """Forty classes of four images of 32 pixels: mixtures of stripes and checks with lines of `scale` pixels."""
    draw, count = np.random.default_rng(0), 16 // scale
    kinds = np.kron(np.array([[[1, -1], [1, -1]], [[1, 1], [-1, -1]], [[1, -1], [-1, 1]]]), np.ones((scale, scale)))
    for name in range(40):
        shares, strength = draw.dirichlet([0.5, 0.5, 0.5]), draw.uniform(10, 120)
        for number in range(4):
            if number == 0 or not alike:
                cells = kinds[draw.choice(3, (count, count), p=shares)].swapaxes(1, 2).reshape(32, 32)
            file = root / f"class {name:02d}" / f"{number}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray((128 + strength * cells).astype(np.uint8)).save(file)
    return root


def test_the_size_that_shows_more_is_taken(fine, tmp_path):
    run = fit(fine, tmp_path / "run", overrides=[*SHORT, SIZES], audit=False)
    rows = run.content["verdict"]["networks"]
    assert {(row["backbone"], row["size"]): row["chosen"] for row in rows} == {
        ("conv4", 16): False,
        ("conv4", 28): True,
    }
    small, large = rows
    assert large["metrics"]["map@r"] > small["metrics"]["map@r"]
    assert small["difference"][2] < 0 == large["difference"][0]
    assert all(row["milliseconds_per_image"] > 0 and row["images"] >= 48 for row in rows)
    assert run.model.preprocessing.crop == 28
    assert json.loads((tmp_path / "run" / "decisions.json").read_text())["networks"]["chosen"] == ["conv4", 28, False]
    assert "Networks and sizes on a sample of train classes" in run.report.read_text(encoding="utf-8")
    assert (tmp_path / "run" / "figures" / "networks.svg").is_file()
    assert any(sentence.startswith("Chosen: conv4 at 28 pixels") for sentence in run.content["verdict"]["sentences"])
    repeated = fit(fine, tmp_path / "again", recipe=tmp_path / "run" / "recipe.toml", audit=False, full=False)
    assert "networks" not in json.loads((tmp_path / "again" / "decisions.json").read_text())
    assert repeated.model.preprocessing.crop == 28


def test_what_adds_nothing_is_not_paid_for(tmp_path):
    coarse = pictures(tmp_path / "coarse", 8, alike=True)
    fit(coarse, tmp_path / "run", overrides=[*SHORT, "networks.sizes=[16,96]"], audit=False, full=False)
    rows = json.loads((tmp_path / "run" / "decisions.json").read_text())["networks"]["rows"]
    assert [row["metrics"]["map@r"] for row in rows] == [1.0, 1.0]
    assert min(rows, key=lambda row: row["milliseconds_per_image"])["chosen"]  # by the clock, which load may turn round


def test_what_is_too_slow_in_use_is_not_taken(fine, tmp_path):
    run = fit(
        fine,
        tmp_path / "run",
        overrides=[*SHORT, "networks.sizes=[16,96]", "train.most_ms=1e-6"],
        audit=False,
        full=False,
    )
    quickest = min(run.content["verdict"]["networks"], key=lambda row: row["milliseconds_per_image"])
    assert quickest["chosen"]


def test_a_run_stopped_while_it_chooses_ends_as_if_it_had_not_been(fine, tmp_path):
    def outcome(run):
        return (run.folder / "model" / "weights.safetensors").read_bytes(), dict(run.result)

    whole = fit(fine, tmp_path / "whole", overrides=[*SHORT, SIZES], full=False)
    for kind, name in (("progress", "choosing"), ("stage", "decoding"), ("stage", "judging")):
        where, stop = tmp_path / name, Stop(2, kind, name)
        with pytest.raises(StoppedError):
            fit(fine, where, overrides=[*SHORT, SIZES], tell=stop.tell, stop=stop, full=False)
        first = 16 if name == "choosing" else 28  # there is a model as soon as a network was measured
        assert Model.load(where / "model").preprocessing.crop == first
        resumed = fit(fine, where, overrides=[*SHORT, SIZES], resume=True, full=False)
        assert outcome(resumed) == outcome(whole), name
    assert Model.load(tmp_path / "choosing" / "model").preprocessing.crop == 28


def stopped(source, out, overrides, kind, name=""):
    """A run that is stopped at its first event of this kind."""
    stop = Stop(1, kind, name)
    with pytest.raises(StoppedError):
        fit(source, out, overrides=[*SHORT, *overrides], tell=stop.tell, stop=stop, audit=False, full=False)
    return Model.load(out / "model")


def test_a_run_killed_in_training_leaves_the_best_without_it(fine, tmp_path):
    saved = stopped(fine, tmp_path / "stopped", [SIZES], "validation")
    whole = fit(fine, tmp_path / "whole", overrides=[*SHORT, SIZES, "optimiser.lr=1e30"], audit=False, full=False)
    assert "what needs no training is delivered" in " ".join(whole.content["verdict"]["sentences"])
    assert saved.classes == whole.model.classes
    pixels = np.random.default_rng(0).integers(0, 256, (4, 32, 32), np.uint8)
    assert np.array_equal(saved.encode(pixels), whole.model.encode(pixels))


def test_the_cheapest_network_is_measured_first_whatever_the_order_of_names(fine, tmp_path):
    names = 'networks.backbones=["conv4","pixels"]'
    first = stopped(fine, tmp_path / "run", [names, SIZES], "progress", "choosing")
    assert first.architecture.backbone == "pixels"


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """Thirty classes of four photos three times as wide as high, which differ at their ends alone."""
    root, draw = tmp_path_factory.mktemp("long"), np.random.default_rng(0)
    for name in range(30):
        ends = draw.integers(0, 256, 2)
        for number in range(4):
            photo = draw.integers(0, 256, (32, 96))
            photo[:, :30], photo[:, -30:] = np.clip(ends[:, None, None] + draw.normal(0, 5, (2, 32, 30)), 0, 255)
            file = root / f"class {name:02d}" / f"{number}.png"
            file.parent.mkdir(exist_ok=True)
            Image.fromarray(photo.astype(np.uint8)).save(file)
    return root


WARPS = "networks.warps=[false,true]"


def test_long_photos_are_warped_where_their_ends_matter(long, tmp_path):
    run = fit(long, tmp_path / "run", overrides=[*SHORT, SIZES, WARPS], audit=False)
    verdict = run.content["verdict"]
    assert [row["warp"] for row in verdict["networks"] if row["chosen"]] == [True]
    assert {row["size"] for row in verdict["networks"] if row["warp"]} <= {16, 28}
    assert any("the whole photo warped to a square" in sentence for sentence in verdict["sentences"])
    assert "whole photo" in run.report.read_text(encoding="utf-8")
    assert run.result["map@r"] > 0.3
    how = Model.load(run.folder / "model").preprocessing
    assert how.warp
    recipe = load(run.folder / "recipe.toml")
    assert build.views(recipe, how).train.warp == recipe.images.short_side
    repeated = fit(long, tmp_path / "again", recipe=tmp_path / "run" / "recipe.toml", audit=False, full=False)
    assert dict(repeated.result) == dict(run.result)


@pytest.mark.parametrize("minutes", [0.05, 0.001])
def test_the_best_of_many_is_also_measured_warped_where_time_ends_early(long, tmp_path, minutes):
    many = ["networks.sizes=[12,14,16,18,20,22,24,26,28,30]", f"train.minutes={minutes}"]
    run = fit(long, tmp_path / "run", overrides=[*SHORT, *many, WARPS], audit=False, full=False)
    rows = run.content["verdict"]["networks"]
    assert [row["warp"] for row in rows if row["chosen"]] == [True]


def test_a_frame_that_is_given_is_not_chosen(long, tmp_path):
    run = fit(long, tmp_path / "run", overrides=[*SHORT, "images.warp=true"], audit=False, full=False)
    assert run.model.preprocessing.warp
    assert "networks" not in json.loads((tmp_path / "run" / "decisions.json").read_text())


def test_square_photos_are_not_measured_warped(fine, tmp_path):
    run = fit(fine, tmp_path / "run", overrides=[*SHORT, SIZES, WARPS], audit=False, full=False)
    assert not any(row["warp"] for row in run.content["verdict"]["networks"])


def test_a_size_that_a_network_cannot_take_is_left_out(fine, tmp_path):
    notes = []
    run = fit(
        fine,
        tmp_path / "run",
        overrides=[*SHORT, "networks.sizes=[8,28]"],
        full=False,
        tell=lambda event: notes.append(event.get("text", "")),
    )
    assert run.model.preprocessing.crop == 28
    assert any("conv4 at 8 pixels is left out: conv4 needs images of at least 16 pixels" in note for note in notes)
    with pytest.raises(UserError, match="at least 16 pixels"):
        fit(fine, tmp_path / "none", overrides=[*SHORT, "networks.sizes=[6,8]"], full=False)


def test_networks_that_are_not_there_are_refused_at_once(fine):
    with pytest.raises(UserError, match="unknown backbone 'conv5': did you mean 'conv4'"):
        choose(str(fine), None, [*SHORT, 'networks.backbones=["conv4","conv5"]'])
    with pytest.raises(UserError, match="no ImageNet weights for ResNet50"):
        choose(str(fine), None, [*SHORT, 'networks.backbones=["conv4","resnet50"]'])
    with pytest.raises(UserError, match=r"networks\.sizes are 1 to"):
        choose(str(fine), None, [*SHORT, "networks.sizes=[0]"])


def test_the_grid():
    photos = of_tree(
        {
            "model": {"backbone": "conv4", "width": 8, "weights": "x"},
            "images": {"size": 32, "short_side": 40},
            "networks": {"backbones": ["conv4", "efficientnet_lite1"], "sizes": [224, 32]},
            "loss": {"name": "triplet"},
            "sampler": {"name": "class_balanced"},
        }
    )
    grid = [("conv4", 32), ("conv4", 224), ("efficientnet_lite1", 32), ("efficientnet_lite1", 224)]
    assert [cell[:2] for cell in cells(photos)] == grid
    own, other = at(photos, NetworkAtSize("conv4", 32)), at(photos, NetworkAtSize("efficientnet_lite1", 224))
    assert own == photos
    assert (other.model.architecture.settings, other.model.weights) == ({}, "pretrained")
    assert (other.images.size, other.images.short_side) == (224, 256)
