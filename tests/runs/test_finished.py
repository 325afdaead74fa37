"""A finished run as it is read back: recipe, log, costs and results, or embeddings alone."""

import json

import pytest
import torch

from lookalike.errors import UserError
from lookalike.evaluation import evaluate
from lookalike.runs import RunFolder
from lookalike.runs.finished import fitting, is_run, load_results, load_test, read, read_json
from tests.report.compared import finished


def test_everything_of_a_run_is_read(tmp_path):
    place = finished(tmp_path / "run", 0.4, seed=3, fold=2, train=True)
    run = read(place)
    assert (run.path, run.seed, run.fold, run.optimistic) == (place, 3, 2, False)
    assert run.settings["loss"] == {"name": "triplet"}
    assert run.training["steps"] == 20
    assert [event["step"] for event in run.log] == [1, 10, 20, 10, 20]
    assert {role: result.to_json() for role, result in run.results.items()} == {
        row.role: row.result.to_json() for row in load_results(RunFolder(place))
    }


def test_the_first_result_of_a_role_counts_and_any_may_be_optimistic(tmp_path):
    place = finished(tmp_path / "run", 0.4)
    (row,) = json.loads((place / "measured.json").read_text())
    other = evaluate(torch.eye(3), [0, 1, 0], metrics=["recall@1"]).to_json()
    second = row | {"optimistic": True, "result": json.loads(other)}
    (place / "measured.json").write_text(json.dumps([row, second]))
    run = read(place)
    assert json.loads(run.results["model"].to_json()) == row["result"]
    assert run.optimistic


def test_embeddings_alone_are_measured_as_the_run_did(tmp_path):
    place = finished(tmp_path / "run", 0.4)
    before = read(place).results["model"]
    assert load_test(place)["embeddings"].shape == (48, 5)
    for name in ("measured.json", "recipe.toml", "log.jsonl", "result.json"):
        (place / name).unlink()
    run = read(place)
    assert run.results["model"]["map@r"] == pytest.approx(before["map@r"])
    assert (run.settings, run.content, run.training, run.log) == ({}, {}, {}, [])
    assert (run.seed, run.fold, run.optimistic) == (0, None, False)


def test_a_folder_without_numbers_is_no_run(tmp_path):
    assert not is_run(tmp_path)
    assert load_test(tmp_path) is None
    with pytest.raises(UserError, match=r"holds no finished run \(neither measured.json or test.npz\)"):
        read(tmp_path)
    assert is_run(finished(tmp_path / "run", 0.4, vectors=False))


def test_files_of_another_form_are_one_line(tmp_path):
    place = finished(tmp_path / "run", 0.4)
    (place / "recipe.toml").write_text("seed = ")
    with pytest.raises(UserError, match="is not a recipe"):
        read(place)
    (tmp_path / "half.json").write_text('{"a": ')
    with pytest.raises(UserError, match=r"is not JSON .*: is the run complete"):
        read_json(tmp_path / "half.json")
    assert read_json(tmp_path / "none.json", otherwise=3) == 3
    message = r"^run 7 holds files of a run that cannot be read \(KeyError: 'a'\)"
    with pytest.raises(UserError, match=message), fitting("run 7"):
        {}["a"]
    with pytest.raises(UserError, match=r"^as it is$"), fitting("run 7"):
        raise UserError("as it is")
