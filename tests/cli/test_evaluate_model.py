"""`lookalike evaluate MODEL DATA` against Model.encode and evaluate; and against the result of the run itself."""

import json

import numpy as np
import pytest

from lookalike import data
from lookalike.evaluation import evaluate
from lookalike.models import Model
from tests.cli.photos import folder


def test_a_model_on_a_folder(lookalike, finished, photos, tmp_path):
    run, _ = finished
    completed = lookalike("evaluate", run / "model", photos, "--json", "--metrics", "recall@1,2 map@r")
    assert completed.code == 0, completed.error
    dataset, model = data.load(photos), Model.load(run / "model")
    paths = [photos / dataset.images.name(row) for row in range(len(dataset))]
    expected = evaluate(model.encode(paths), dataset.labels, metrics="recall@1,2 map@r")
    assert json.loads(completed.out)["metrics"] == pytest.approx(dict(expected), abs=1e-6)
    completed = lookalike("evaluate", run / "model", photos, "--by-class", "map@r", "--out", tmp_path / "r.json")
    assert "class 00" in completed.out
    assert "recall@1" in (tmp_path / "r.json").read_text()


def test_the_embeddings_of_a_run_give_its_result(lookalike, finished):
    run, _ = finished
    completed = lookalike("evaluate", run / "test.npz", "--json")
    reported = json.loads((run / "result.json").read_text())["results"][0]["metrics"]
    metrics = json.loads(completed.out)["metrics"]
    assert {name: metrics[name] for name in reported} == pytest.approx(reported, abs=1e-9)
    content = np.load(run / "test.npz")
    trained = json.loads((run / "model" / "model.json").read_text())["classes"]
    assert not set(content["labels"].tolist()) & set(trained)  # never seen in training


def test_the_split_of_the_data_is_respected(lookalike, finished, photos, tmp_path):
    run, _ = finished
    rows = ["path,label,split"]
    for file in sorted(photos.rglob("*.png")):
        name = file.parent.name
        rows.append(f"{file},{name},{'test' if name < 'class 05' else 'train'}")
    table = tmp_path / "table.csv"
    table.write_text("\n".join(rows) + "\n")
    facts = {}
    for split in ("test", "train", "all"):
        completed = lookalike("evaluate", run / "model", table, "--json", "--metrics", "recall@1", "--split", split)
        assert completed.code == 0, completed.error
        facts[split] = json.loads(completed.out)["facts"]["queries"]
    assert facts == {"test": 30, "train": 42, "all": 72}


def test_mistakes(lookalike, finished, photos, tmp_path):
    run, _ = finished
    lookalike("evaluate", tmp_path / "none", photos).refused("none")
    lookalike("evaluate", run / "model", tmp_path / "nowhere").refused("nowhere")
    lookalike("evaluate", run / "model", photos, "--metrics", "recal@1").refused("recal")
    lookalike("evaluate", run / "model", photos, "--out", tmp_path / "no" / "r.json").refused("cannot write")
    single = folder(tmp_path / "single", classes=3, each=1)
    assert lookalike("evaluate", run / "model", single).code == 2
