"""A model folder from anywhere: it loads, or it is refused in one line. It never runs, fetches or hangs anything."""

import copy
import json
import os
import pickle
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from lookalike.errors import UserError
from lookalike.models import Architecture, Model, Preprocessing, Readout, untrusted

pytestmark = pytest.mark.plain
DRAWINGS = np.random.default_rng(0).integers(0, 256, (2, 20, 24), dtype=np.uint8)
VALUES = [
    None,
    True,
    0,
    -1,
    1,
    2**40,
    10**30,
    1e308,
    -0.5,
    "",
    "x",
    "../../etc/passwd",
    "none",
    [],
    [1],
    [[1]],
    {},
    {"a": 1},
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Every kind of model that a folder describes, small."""
    how = Preprocessing(16, 20, mean=(1.0,), std=(2.0,), order="L")
    conv4 = Model.create(Architecture("conv4", {"channels": 1, "width": 4}, dim=3, pooling="gem"), preprocessing=how)
    conv4.classes, conv4.metrics, conv4.recipe = ("hen", "owl"), {"recall@1": 0.5}, "seed = 5\n"
    both = conv4.with_readout(Readout("both", components=2), torch.zeros(4), torch.eye(2, 4))
    pixels = Model.create(Architecture("pixels", {"channels": 1, "side": 16}, dim=None))
    result = {}
    for name, model in {"conv4": conv4, "both": both, "pixels": pixels}.items():
        result[name] = tmp_path_factory.mktemp(name) / "m"
        model.save(result[name])
    return result


def places(values, where=()):
    """The way to every value of nested tables and lists."""
    yield where
    entries = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for key, value in entries:
        yield from places(value, (*where, key))


def with_value(values, where, value):
    changed = copy.deepcopy(values)
    if not where:
        return value
    inner = changed
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    return changed


def without(values, where):
    changed = copy.deepcopy(values)
    inner = changed
    for key in where[:-1]:
        inner = inner[key]
    del inner[where[-1]]
    return changed


def mutants(values):
    for where in places(values):
        for value in VALUES:
            yield with_value(values, where, value)
        if where:
            yield without(values, where)
        inner = values
        for key in where:
            inner = inner[key]
        if isinstance(inner, dict):
            yield with_value(values, (*where, "surprise"), 1)


def outcome(folder):
    """What loading and using a folder ends in: embeddings, or one line."""
    try:
        return Model.load(folder).encode(DRAWINGS)
    except UserError as error:
        line = str(error)
    assert "\n" not in line
    return line


@pytest.mark.slow
@pytest.mark.parametrize("name", ["conv4", "both", "pixels"])
def test_every_field_may_hold_anything(folders, name, tmp_path):
    shutil.copytree(folders[name], tmp_path / "m")
    values = json.loads((tmp_path / "m" / "model.json").read_text())
    del values["fingerprint"]  # else nothing but it would be tested
    refused = tried = 0
    for mutant in mutants(values):
        (tmp_path / "m" / "model.json").write_text(json.dumps(mutant))
        tried += 1
        refused += isinstance(outcome(tmp_path / "m"), str)
    assert tried > 300
    assert refused / tried > 0.6


TEXTS = {
    "empty": b"",
    "cut off": b'{"format": 1, "archit',
    "not UTF-8": b'{"format": 1, "geometry": "\xff"}',
    "a list": b"[]",
    "not a number": b'{"format": NaN}',
    "deep": b"[" * 100_000,
    "many digits": b'{"format": ' + b"1" * 10_000 + b"}",
    "zero bytes": b"\0" * 100,
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("file", ["model.json", "recipe.toml"])
def test_text_that_is_damaged(folders, text, file, tmp_path):
    shutil.copytree(folders["conv4"], tmp_path / "m")
    (tmp_path / "m" / file).write_bytes(TEXTS[text])
    refused = isinstance(outcome(tmp_path / "m"), str)
    assert refused == (file == "model.json" or text == "not UTF-8")


@pytest.mark.parametrize("file", ["model.json", "recipe.toml", "weights.safetensors"])
def test_files_that_are_none(folders, file, tmp_path):
    def sparse(path):
        with path.open("wb") as stream:
            stream.truncate(1 << 40)

    for make in (os.mkfifo, os.mkdir, sparse, lambda path: path.symlink_to("/dev/zero")):
        shutil.rmtree(tmp_path / "m", ignore_errors=True)
        shutil.copytree(folders["conv4"], tmp_path / "m")
        (tmp_path / "m" / file).unlink()
        make(tmp_path / "m" / file)
        assert isinstance(outcome(tmp_path / "m"), str)


def test_weights_that_are_damaged(folders, tmp_path):
    shutil.copytree(folders["conv4"], tmp_path / "m")
    file = tmp_path / "m" / "weights.safetensors"
    content = file.read_bytes()
    random = np.random.default_rng(0)
    for cut in (0, 1, 7, 8, 9, 100, len(content) // 2, len(content) - 1):
        file.write_bytes(content[:cut])
        assert isinstance(outcome(tmp_path / "m"), str), cut
    for _ in range(200):
        flipped = bytearray(content)
        flipped[random.integers(len(content))] ^= 1 << random.integers(8)
        file.write_bytes(flipped)
        counter_or_refused = outcome(tmp_path / "m")  # the counters of batch normalisation change no embedding
        assert isinstance(counter_or_refused, str) or torch.equal(
            counter_or_refused, Model.load(folders["conv4"]).encode(DRAWINGS)
        )
    file.write_bytes(random.bytes(5000))
    assert "cannot read weights" in outcome(tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda state: state["head.linear.weight"].fill_(torch.nan),
            "head.linear.weight has values that are not numbers",
        ),
        (lambda state: state["head.linear.weight"].fill_(torch.inf), "has values that are not numbers"),
        (lambda state: state["backbone.block1.1.running_var"].fill_(-9.0), "embeddings are not numbers"),
        (lambda state: state.update({"head.linear.bias": torch.ones(3, dtype=torch.int32)}), "is torch.int32, not"),
        (lambda state: state.update({"head.linear.bias": torch.ones(3, dtype=torch.complex64)}), "is torch.complex64"),
        (lambda state: state.update(more=torch.ones(1)), "1 unexpected: more"),
        (lambda state: state.pop("head.linear.bias"), "1 missing: head.linear.bias"),
        (lambda state: state.update({"head.linear.bias": torch.ones(4)}), "of another shape: head.linear.bias"),
    ],
)
def test_weights_that_do_not_fit(folders, tmp_path, change, message):
    shutil.copytree(folders["conv4"], tmp_path / "m")
    state = load_file(tmp_path / "m" / "weights.safetensors")
    change(state)
    save_file(state, tmp_path / "m" / "weights.safetensors")
    values = json.loads((tmp_path / "m" / "model.json").read_text())
    del values["fingerprint"]
    (tmp_path / "m" / "model.json").write_text(json.dumps(values))
    assert message in outcome(tmp_path / "m")


def test_a_network_of_terabytes_is_refused_before_it_is_built(folders, tmp_path):
    shutil.copytree(folders["conv4"], tmp_path / "m")
    values = json.loads((tmp_path / "m" / "model.json").read_text())
    values["architecture"]["settings"]["width"] = 1 << 20
    (tmp_path / "m" / "model.json").write_text(json.dumps(values))
    assert "does not fit" in outcome(tmp_path / "m")


class Bomb:
    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize(
    "settings",
    [
        {"options": {"checkpoint_path": "BOMB"}},
        {"options": {"pretrained_cfg": {"file": "BOMB"}}},
        {"options": {"pretrained_cfg_overlay": {"url": "file://BOMB"}}},
        {"options": {"cache_dir": "/"}},
        {"options": {"img_size": "BOMB"}},
        {"options": ["checkpoint_path"]},
        {"config": {}},
        {"source": "resnet18"},
    ],
)
@pytest.mark.parametrize("backbone", ["timm:resnet18", "hf:facebook/dinov2-small"])
def test_a_folder_hands_nothing_harmful_to_other_libraries(folders, tmp_path, settings, backbone):
    (tmp_path / "bomb.pth").write_bytes(pickle.dumps(Bomb(tmp_path / "ran")))
    settings = json.loads(json.dumps(settings).replace("BOMB", str(tmp_path / "bomb.pth")))
    architecture = Architecture(backbone, settings)
    with pytest.raises(UserError, match=r"refused|must be a table"):
        untrusted.build(architecture, folders["conv4"] / "weights.safetensors")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "backbone", ["timm:hf-hub:someone/network", "timm:local-dir:/tmp/network", "timm:../x", "hf:someone/network", "x:y"]
)
def test_a_folder_names_nothing_that_is_fetched(folders, backbone):
    with pytest.raises(UserError, match=r"refused|unknown source"):
        untrusted.build(Architecture(backbone), folders["conv4"] / "weights.safetensors")


@pytest.mark.parametrize("name", ["timm_wrapper", "upernet", "vit-remote", None, 3, ["vit"]])
def test_networks_of_transformers_that_are_not_listed(folders, name):
    settings = {"config": {"model_type": name, "auto_map": {"AutoModel": "code.Model"}}, "preprocessing": {"crop": 28}}
    with pytest.raises(UserError, match=r"networks of type .* are not on the list"):
        untrusted.build(Architecture("hf:x", settings), folders["conv4"] / "weights.safetensors")
