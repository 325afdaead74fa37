"""Every example runs as it stands, and does what it says: the numbers it ends with are good ones."""

import json
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from lookalike.models import Architecture, Model, export_onnx
from tests.missing import missing

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOK = EXAMPLES / "first_steps.ipynb"
PROMISES = {
    "hugging_face_backbone": lambda names: names["after"]["recall@1"] > names["before"]["recall@1"] + 0.1,
    "judged_pairs": lambda names: names["run"].result["recall@1"] > 0.8,
    "judged_triplets": lambda names: names["after"] > names["before"] + 0.2,
    "lightning_module": lambda names: names["module"].history[-1] > names["module"].history[0] + 0.04,
    "plain_loop": lambda names: names["after"]["recall@1"] > names["before"]["recall@1"] + 0.04,
    "several_labels": lambda names: names["after"]["ndcg@10"] > names["before"]["ndcg@10"] + 0.2,
    "tabular": lambda names: names["after"]["recall@1"] > names["before"]["recall@1"] + 0.1,
    "text": lambda names: names["result"]["recall@1"] > 0.9,
    "timm_backbone": lambda names: names["after"]["recall@1"] > names["before"]["recall@1"] + 0.04,
    "visual_search": lambda names: names["right"] >= 6,
    "verification": lambda names: names["accepted"] > 0.5 and 0.003 < names["false"] < 0.03,
}


# torchvision, which timm brings, is built for graphics cards: beside a torch without them it breaks the other libraries
NOT_IN_CI = {"hugging_face_backbone": "transformers", "timm_backbone": "timm"}
WITHOUT_TORCH = """
import runpy, sys
sys.argv = sys.argv[1:]
names = runpy.run_path(sys.argv[0], run_name="__main__")
names["np"].save(sys.argv[-1], names["embeddings"])
sys.exit(", ".join({"torch", "lookalike"} & set(sys.modules)) or None)
"""


@pytest.fixture
def parts(name):
    """What the example imports and this machine may lack."""
    if name in NOT_IN_CI:
        pytest.importorskip(NOT_IN_CI[name], reason=f"{NOT_IN_CI[name]} is not installed", exc_type=ImportError)
    if name == "lightning_module" and not find_spec("pytorch_lightning"):
        missing("pytorch-lightning is not installed")


@pytest.mark.usefixtures("parts")
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:.*does not have many workers")  # inside Lightning
@pytest.mark.parametrize("name", PROMISES)
def test_an_example_keeps_its_promise(name, capsys):
    names = runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert PROMISES[name](names), printed
    assert printed


def test_a_search_without_torch_finds_what_torch_finds(tmp_path):
    colours = torch.Generator().manual_seed(0)
    for number, size in enumerate([(40, 40), (40, 60), (70, 50), (64, 64), (48, 40), (40, 41)]):
        pixels = torch.randint(256, (4, 4, 3), generator=colours, dtype=torch.uint8).numpy()
        path = tmp_path / "photos" / f"{number % 2}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC).save(path)
    model = Model.create(Architecture("conv4", {"channels": 3}, dim=16))
    model.preprocessing = model.preprocessing.sized(28, 32)
    export_onnx(model, tmp_path / "model.onnx")
    paths = sorted((tmp_path / "photos").rglob("*.png"))
    script, onnx, saved = EXAMPLES / "onnx_without_torch.py", tmp_path / "model.onnx", tmp_path / "vectors.npy"
    command = [sys.executable, "-c", WITHOUT_TORCH, script, onnx, paths[2], tmp_path / "photos", saved]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "1.000  0/4.png"
    expected = model.encode(paths).numpy()
    assert np.abs(np.load(saved) - expected).max() < 0.02  # Pillow rounds once more while resizing
    order = np.argsort(-expected @ expected[2])[:5]
    assert [line.split()[1] for line in done.stdout.splitlines()] == [
        str(paths[place].relative_to(tmp_path / "photos")) for place in order
    ]


def test_the_notebook_runs_from_top_to_bottom(capsys):
    """With a hundredth of its steps; its own outputs are of all of them."""
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), "run it anew, from the top"
    assert all(cell["outputs"] for cell in cells)
    names: dict[str, object] = {}
    for cell in cells:
        exec(compile("".join(cell["source"]).replace("steps = 300", "steps = 3"), NOTEBOOK.name, "exec"), names)
    assert "recall" in capsys.readouterr().out
    assert len(names["nearest"]) == 10


def test_every_example_is_run():
    assert sorted([*PROMISES, "onnx_without_torch"]) == sorted(path.stem for path in EXAMPLES.glob("*.py"))


def test_every_example_is_short_and_listed():
    listed = (EXAMPLES.parent / "docs" / "examples.md").read_text()
    for path in EXAMPLES.glob("*.py"):
        assert f"`{path.name}`" in listed
        assert len(path.read_text().splitlines()) <= 60
