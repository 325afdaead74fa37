"""A model encodes every form of image, and is the same after saving and loading."""

import errno
import json
import os
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from lookalike.errors import UserError
from lookalike.models import Architecture, Model, Preprocessing
from lookalike.models import model_folder as disk
from lookalike.models.preprocess import _resized as evaluation_size

SMALL = Architecture("conv4", {"width": 8}, dim=6, pooling="gem", bias=False, batch_norm="frozen_statistics")


@pytest.fixture
def model():
    created = Model.create(SMALL, seed=3, preprocessing=Preprocessing(crop=28, resize=32))
    created.classes, created.metrics, created.recipe = ("hen", "owl"), {"recall@1": 0.5}, "seed = 3\n"
    return created


@pytest.fixture
def arrays():
    return np.random.default_rng(0).integers(0, 256, (5, 40, 50, 3), dtype=np.uint8)


def test_paths_arrays_and_images_are_encoded_alike(model, arrays, tmp_path):
    paths = []
    for number, array in enumerate(arrays):
        paths.append(tmp_path / f"{number}.png")
        Image.fromarray(array).save(paths[-1])
    expected = model.encode(arrays)
    assert expected.shape == (5, 6)
    torch.testing.assert_close(expected.norm(dim=1), torch.ones(5))
    tensors = torch.from_numpy(arrays).movedim(3, 1)
    images = [Image.fromarray(array) for array in arrays]
    for same in (paths, [str(path) for path in paths], list(arrays), tensors, list(tensors), images):
        torch.testing.assert_close(model.encode(same, batch_size=2), expected)
    mixed = [paths[0], arrays[1], images[2], tensors[3], str(paths[4])]
    torch.testing.assert_close(model.encode(mixed), expected)


def test_anything_with_a_length_and_items_is_a_sequence(model, arrays):
    class Lazy:
        def __len__(self):
            return len(arrays)

        def __getitem__(self, position):
            return Image.fromarray(arrays[position])

    torch.testing.assert_close(model.encode(Lazy(), batch_size=2), model.encode(arrays))


def test_a_custom_decoder(model, arrays):
    names = []

    def decode(path):
        names.append(path.name)
        return torch.from_numpy(arrays[int(path.stem)]).movedim(2, 0)

    torch.testing.assert_close(model.encode(["0.jpg", "1.jpg"], decode=decode), model.encode(arrays[:2]))
    assert names == ["0.jpg", "1.jpg"]


def test_photographs_are_turned_upright(model, arrays, tmp_path):
    image = Image.fromarray(arrays[0])
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees clockwise
    image.save(tmp_path / "turned.png", exif=exif)
    torch.testing.assert_close(model.encode([tmp_path / "turned.png"]), model.encode([image.rotate(-90, expand=True)]))


def test_progress_and_training_mode(model, arrays):
    calls = []
    model.embedder.train()
    model.encode(arrays, batch_size=2, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(2, 5), (4, 5), (5, 5)]
    assert model.embedder.training
    assert not model.embedder.backbone.block1[1].training, "frozen statistics stay frozen"


@pytest.mark.parametrize("geometry", ["sphere", "ball", "none"])
def test_the_geometry_is_remembered(model, arrays, tmp_path, geometry):
    model.geometry = geometry
    embeddings = model.encode(arrays)
    raw = model.encode(arrays) if geometry == "none" else None
    model.save(tmp_path / "m")
    loaded = Model.load(tmp_path / "m")
    assert loaded.geometry == geometry
    assert torch.equal(loaded.encode(arrays), embeddings)
    if raw is not None:
        assert not torch.allclose(raw.norm(dim=1), torch.ones(5))


def test_everything_survives_the_folder(model, arrays, tmp_path):
    model.save(tmp_path / "deep" / "m")
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["m"]
    files = sorted(path.name for path in (tmp_path / "deep" / "m").iterdir())
    assert files == ["README.md", "model.json", "recipe.toml", "weights.safetensors"]
    loaded = Model.load(tmp_path / "deep" / "m")
    assert torch.equal(loaded.encode(arrays), model.encode(arrays))
    for part in ("architecture", "preprocessing", "geometry", "classes", "metrics", "recipe"):
        assert getattr(loaded, part) == getattr(model, part), part
    state, again = model.embedder.state_dict(), loaded.embedder.state_dict()
    assert all(torch.equal(value, again[key]) for key, value in state.items())
    assert loaded.embedder.batch_norm == "frozen_statistics"


def test_the_card_says_what_it_is(model, tmp_path):
    model.save(tmp_path / "m")
    card = (tmp_path / "m" / "README.md").read_text()
    for fact in ("conv4", "gem pooling", "6 dimensions", "unit vectors", "shorter side to 32", "| recall@1 | 0.5000 |"):
        assert fact in card
    assert "2 classes\n\nhen, owl" in card


def test_saving_again_replaces_the_old_model(model, arrays, tmp_path):
    model.save(tmp_path / "m")
    first = model.encode(arrays)
    with torch.no_grad():
        model.embedder.head.linear.weight.mul_(-1)
    model.recipe = None
    model.save(tmp_path / "m")
    assert torch.equal(Model.load(tmp_path / "m").encode(arrays), -first)
    assert Model.load(tmp_path / "m").recipe is None
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_failed_save_leaves_the_old_model(model, arrays, tmp_path, monkeypatch):
    model.save(tmp_path / "m")
    expected = model.encode(arrays)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk, "model_card", full)
    with pytest.raises(UserError, match=r"cannot write .*m \(No space left on device\)"):
        model.save(tmp_path / "m")
    assert torch.equal(Model.load(tmp_path / "m").encode(arrays), expected)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_swap_cut_in_the_middle_is_undone(model, arrays, tmp_path, monkeypatch):
    model.save(tmp_path / "m")
    real = type(tmp_path).rename

    def rename(self, target):
        if self.name.endswith(".partial"):
            raise OSError(errno.EIO, "Input/output error")
        return real(self, target)

    monkeypatch.setattr(type(tmp_path), "rename", rename)
    with pytest.raises(UserError, match="Input/output error"):
        model.save(tmp_path / "m")
    assert Model.load(tmp_path / "m").encode(arrays).shape == (5, 6)


def test_a_model_lost_between_two_renames_is_pointed_at(model, tmp_path):
    model.save(tmp_path / "m")
    (tmp_path / "m").rename(tmp_path / ".m.123.old")
    with pytest.raises(UserError, match=r"a save was interrupted, and the model before it is .*\.m\.123\.old"):
        Model.load(tmp_path / "m")


def test_a_folder_that_holds_something_else_is_left_alone(model, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_text("a")
    with pytest.raises(UserError, match="photos is not a model folder"):
        model.save(tmp_path / "photos")
    (tmp_path / "file").write_text("a")
    with pytest.raises(UserError, match="is not a model folder"):
        model.save(tmp_path / "file")
    with pytest.raises(UserError, match="cannot write"):
        model.save(tmp_path / "file" / "inside")


def test_a_custom_network(arrays, tmp_path):
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 28 * 28, 4))
    model = Model(network, Preprocessing(crop=28, resize=28))
    model.save(tmp_path / "m")
    with pytest.raises(UserError, match=r"a network of your own: pass it to Model.load\(folder, embedder="):
        Model.load(tmp_path / "m")
    fresh = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 28 * 28, 4))
    assert torch.equal(Model.load(tmp_path / "m", embedder=fresh).encode(arrays), model.encode(arrays))


def changed(folder, **parts):
    path = folder / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **parts}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "model.json").unlink(), "there is no model.json"),
        (lambda folder: (folder / "model.json").write_text("{"), "cannot read .*model.json"),
        (lambda folder: (folder / "model.json").write_text("[]"), "must be a table of keys and values"),
        (lambda folder: (folder / "weights.safetensors").unlink(), "has no weights.safetensors"),
        (lambda folder: (folder / "weights.safetensors").write_bytes(b"abc"), "cannot read weights from"),
        (lambda folder: changed(folder, format=2), "has format 2, this version reads 1"),
        (lambda folder: changed(folder, geometry="cube"), "geometry 'cube'. Possible: ball, none, sphere"),
        (lambda folder: changed(folder, architecture={"backbone": "conv4", "dimm": 3}), "did you mean 'dim'"),
        (lambda folder: changed(folder, architecture={"backbone": "conv4"}), "does not fit Embedder"),
        (shutil.rmtree, "no model in"),
    ],
)
@pytest.mark.plain
def test_a_damaged_folder_is_refused_in_one_line(model, tmp_path, damage, message):
    model.save(tmp_path / "m")
    damage(tmp_path / "m")
    with pytest.raises(UserError, match=message) as caught:
        Model.load(tmp_path / "m")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ("a.jpg", r"encode takes many images: give \['a.jpg'\]"),
        ([], "there are no images"),
        (iter([1]), "a sequence of images, not list_iterator"),
        (np.zeros((28, 28, 3), np.uint8), r"looks like one image: encode takes many, give \[image\]"),
        (torch.zeros(3, 28, 28), "looks like one image"),
        (["nowhere.jpg"], "there is no image nowhere.jpg"),
        ([__file__], "cannot read .* as an image"),
    ],
)
def test_input_that_is_not_a_sequence_of_images(model, images, message):
    with pytest.raises(UserError, match=message):
        model.encode(images)


def test_weights_are_not_part_of_an_architecture():
    with pytest.raises(UserError, match="weights are not part of an architecture"):
        Architecture("resnet18", {"weights": "pretrained"})


def test_a_device_that_does_not_exist(model, tmp_path):
    model.save(tmp_path / "m")
    with pytest.raises(UserError, match="there is no device 'gpu'"):
        Model.load(tmp_path / "m", device="gpu")
    if not torch.cuda.is_available():
        with pytest.raises(UserError, match="there is no cuda device on this machine: use cpu"):
            Model.load(tmp_path / "m", device="cuda")


def test_without_its_head_a_model_gives_what_goes_into_it(tmp_path):
    model = Model.create(Architecture("conv4", {"channels": 1}, dim=9, pooling="gem", layer_norm=True))
    other = Model.create(Architecture("conv4", {"channels": 1}, dim=3, pooling="gem", bias=False))
    images = np.random.default_rng(0).integers(0, 256, (5, 28, 28), dtype=np.uint8)
    bare = model.headless()
    features = bare.encode(images)
    assert features.shape == (5, 64)
    heads = torch.nn.functional.normalize(model.embedder.head(features), dim=1)
    torch.testing.assert_close(heads, model.encode(images))
    assert bare.fingerprint == other.headless().fingerprint != model.fingerprint
    bare.save(tmp_path / "bare")
    assert torch.equal(Model.load(tmp_path / "bare").encode(images), features)
    with pytest.raises(UserError, match="your own"):
        Model(torch.nn.Flatten(), Preprocessing()).headless()


def test_files_that_are_not_images_are_refused_without_reading_them(model, tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    os.symlink("/dev/zero", tmp_path / "zero.jpg")
    with (tmp_path / "sparse.jpg").open("wb") as file:
        file.truncate(1 << 40)
    (tmp_path / "drawing.jpg").write_bytes(
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n"
    )
    for name, reason in {
        "pipe.jpg": "not an ordinary file",
        "zero.jpg": "not an ordinary file",
        "sparse.jpg": "more than 536,870,912 bytes",
        "drawing.jpg": "begins with",
    }.items():
        with pytest.raises(UserError, match=rf"cannot read .*{name} as an image: .*{reason}"):
            model.encode([tmp_path / name])


def test_a_long_strip_takes_little_memory(model):
    model.preprocessing = Preprocessing(crop=224, resize=256)
    model.encode([np.zeros((1, 30000, 3), np.uint8)])
    tracked = evaluation_size(30000, 1, model.preprocessing)
    assert tracked == (4096, 256)


def test_embeddings_that_are_not_numbers_are_refused(model, arrays):
    with torch.no_grad():
        model.embedder.head.linear.weight[0, 0] = torch.inf
    with pytest.raises(UserError, match="embeddings are not numbers: the weights are damaged"):
        model.encode(arrays)
