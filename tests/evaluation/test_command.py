"""`lookalike evaluate FILE.npz`."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from lookalike.cli import app
from lookalike.errors import UserError
from lookalike.evaluation import Result, evaluate


@pytest.fixture
def file(tmp_path):
    draw = np.random.default_rng(0)
    labels = np.array([f"class {code % 6}" for code in range(60)])
    vectors = draw.standard_normal((60, 5)).astype("f")
    path = tmp_path / "test.npz"
    np.savez(path, embeddings=vectors, labels=labels, categories=np.arange(60) % 2)
    return path


def run(*words):
    result = CliRunner().invoke(app, ["evaluate", *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def test_table_and_json_say_what_evaluate_says(file, tmp_path):
    content = np.load(file)
    expected = evaluate(content["embeddings"], content["labels"])
    assert "recall" in run(file)
    document = json.loads(run(file, "--json", "--by-class", "map@r", "--by-category", "mrr", "--worst", 3))
    assert document["metrics"] == dict(expected)
    assert len(document["by_class"]) == 6
    assert len(document["by_category"]) == 2
    assert len(document["worst"]) == len(document["confused"]) == 3
    text = run(
        file, "--metrics", "recall@1,2 map@r nmi", "--by-class", "map@r", "--worst", 2, "--out", tmp_path / "r.json"
    )
    assert "most confused classes" in text
    assert set(Result.from_json((tmp_path / "r.json").read_text())) == {
        "recall@1",
        "recall@2",
        "map@r",
        "nmi",
        "category_nmi",
    }


def test_the_worst_queries_are_named_by_their_paths(file, tmp_path):
    content = dict(np.load(file))
    paths = np.array([f"/photos/{row}.jpg" for row in range(len(content["labels"]))])
    np.savez(tmp_path / "named.npz", **content, paths=paths, fingerprint="abc")
    worst = json.loads(run(tmp_path / "named.npz", "--json", "--worst", 2))["worst"]
    assert [path for *_, path in worst] == [f"/photos/{row}.jpg" for row, *_ in worst]
    text = run(tmp_path / "named.npz", "--worst", 2)
    assert all(f"/photos/{row}.jpg" in text for row, *_ in worst)
    assert f"row {worst[0][0]} " in run(file, "--worst", 2)


def test_a_gallery_in_the_file(tmp_path):
    draw = np.random.default_rng(1)
    path = tmp_path / "pair.npz"
    queries = {"embeddings": draw.standard_normal((9, 3)), "labels": np.arange(9) % 3, "ignore": np.arange(9) % 2}
    items = {"embeddings": draw.standard_normal((20, 3)), "labels": np.arange(20) % 3, "ignore": np.arange(20) % 4}
    np.savez(path, **queries, **{f"gallery_{name}": array for name, array in items.items()})
    document = json.loads(run(path, "--json", "--metrics", "recall@1 cmc"))
    assert document["facts"]["gallery"] == 20
    assert document["curves"]["cmc"]["recall"][0] == document["metrics"]["recall@1"]


def test_mistakes(tmp_path):
    wrong = tmp_path / "wrong.npz"
    np.savez(wrong, embeddings=np.ones((2, 2)))
    with pytest.raises(UserError, match="has no array 'labels'"):
        run(wrong)
    np.savez(wrong, embedings=np.ones((2, 2)))
    with pytest.raises(UserError, match="did you mean 'embeddings'"):
        run(wrong)
    with pytest.raises(UserError, match="there is no file"):
        run(tmp_path / "missing.npz")
    assert "Example: lookalike evaluate" in run("--help")
