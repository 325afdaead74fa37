"""What version 0.1.0 wrote: its models still work, its runs can still be read; only resuming one is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from lookalike.cli import app
from lookalike.data import arrays
from lookalike.errors import UserError
from lookalike.evaluation import evaluate
from lookalike.fit import fit
from lookalike.models import Model
from lookalike.runs import read

DATA = Path(__file__).parent / "data" / "version_0_1_0"


@pytest.fixture
def run(tmp_path):
    return shutil.copytree(DATA / "run", tmp_path / "run")


@pytest.fixture
def photos():
    with np.load(DATA / "photos.npz") as content:
        return dict(content)


def test_its_model_loads_embeds_and_evaluates_alike(run, photos):
    model = Model.load(run / "model")
    vectors = model.encode(np.repeat(photos["pixels"][..., None], 3, axis=3))
    assert np.abs(vectors.numpy() - photos["embeddings"]).max() < 1e-6
    finished = read(run)
    unseen = ~np.isin(photos["labels"], model.classes)
    tested = np.isin(photos["labels"], np.unique(np.load(run / "test.npz")["labels"]))
    assert (unseen | ~tested).all()
    result = evaluate(vectors[tested], photos["labels"][tested].tolist(), metrics=["recall@1", "map@r"])
    for name, value in result.items():
        assert value == pytest.approx(finished.results["model"][name], abs=1e-9)
        assert value == pytest.approx(model.metrics[name], abs=1e-9)


def test_its_runs_are_reported_and_compared(run, tmp_path):
    shown = CliRunner().invoke(app, ["report", str(run)])
    assert shown.exit_code == 0, shown.output
    assert "this model" in shown.stdout
    assert (run / "report.html").is_file()
    other = shutil.copytree(run, tmp_path / "other")
    (other / "recipe.toml").write_text((run / "recipe.toml").read_text().replace("lr = 0.01", "lr = 0.02"))
    shown = CliRunner().invoke(app, ["compare", str(run), str(other), "--out", str(tmp_path / "page"), "--json"])
    assert shown.exit_code == 0, shown.output
    content = json.loads((tmp_path / "page" / "compare.json").read_text())
    assert "optimiser.lr" in json.dumps(content)


def test_resuming_one_is_refused_in_one_line(run, photos):
    log = (run / "log.jsonl").read_bytes()
    dataset = arrays(np.repeat(photos["pixels"][..., None], 3, axis=3), photos["labels"].tolist(), name="photos")
    with pytest.raises(UserError, match="another version of lookalike") as raised:
        fit(dataset, run, resume=True)
    assert "\n" not in str(raised.value)
    assert (run / "log.jsonl").read_bytes() == log


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("result.json", '{"results": 3}'),
        ("result.json", '{"results": [1], "differences": 3}'),
        ("result.json", "[" * 100_000),
        ("audit.json", '{"findings": [1]}'),
        ("measured.json", '{"x": 3}'),
        ("recipe.toml", "seed = ["),
        ("test.npz", "PK nothing"),
    ],
)
@pytest.mark.parametrize("verb", ["report", "compare"])
def test_files_of_another_form_are_one_line(run, tmp_path, file, content, verb):
    (run / file).write_text(content)
    words = (
        ["report", str(run)] if verb == "report" else ["compare", str(run), str(DATA / "run"), "--out", str(tmp_path)]
    )
    shown = CliRunner().invoke(app, words)
    if shown.exit_code:
        assert isinstance(shown.exception, UserError), shown.exception
        assert "\n" not in str(shown.exception)
