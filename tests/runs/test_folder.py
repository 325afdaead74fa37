"""A run's folder: one owner at a time, begun or resumed in one way, cleared of what killed writers left."""

import pytest
import torch

from lookalike.errors import UserError
from lookalike.evaluation import evaluate
from lookalike.runs import RunFolder, checkpoint
from lookalike.runs.finished import NamedResult, load_results, save_results
from lookalike.runs.folder import differences
from lookalike.runs.log import read_log
from tests.cli.processes import Python

HOLD = """
import sys, time
from pathlib import Path
from lookalike.runs import RunFolder
with RunFolder(Path(sys.argv[1])).claimed():
    print("mine", flush=True)
    time.sleep(1000)
"""


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path / "run")


def test_a_second_process_is_refused_until_the_first_dies(folder):
    other = Python(HOLD, folder.path)
    try:
        assert other.output.readline() == "mine\n"
        with pytest.raises(UserError, match="another process is working in"), folder.claimed():
            pass
    finally:
        other.killed()
    with folder.claimed():
        folder.begin("new", "seed = 0\n")
    assert folder.begun


def test_what_a_folder_allows(folder):
    with pytest.raises(UserError, match="no run to resume"):
        folder.check("resume")
    with folder.claimed():
        run = folder.begin("new", "seed = 1\n")
        run.note("hello")
    assert not run.resumed
    with pytest.raises(UserError, match=r"holds a run: .*--resume.*--fresh"):
        folder.check("new")
    with folder.claimed():
        assert folder.begin("either", "seed = 2\n").resumed
    assert folder.recipe.read_text() == "seed = 1\n"
    assert [event["text"] for event in read_log(folder.log).events] == ["hello"]
    with folder.claimed():
        assert not folder.begin("fresh", "seed = 3\n").resumed
    assert folder.recipe.read_text() == "seed = 3\n"
    assert not folder.log.exists()


def test_files_of_somebody_else_are_never_touched(folder):
    folder.path.mkdir()
    (folder.path / "thesis.txt").write_text("mine")
    for intent in ("new", "fresh"):
        with pytest.raises(UserError, match="exists and is not a run"):
            folder.check(intent)
    assert (folder.path / "thesis.txt").read_text() == "mine"


def test_leftovers_of_killed_writers_do_not_matter(folder):
    folder.checkpoint.mkdir(parents=True)
    left = [folder.path / ".result.json.1-ab.partial", folder.checkpoint / ".step-00000002.1-ab.partial"]
    left[0].write_text("half")
    left[1].mkdir()
    folder.checkpoint.joinpath("step-00000002").mkdir()
    with folder.claimed():
        folder.begin("either", "seed = 0\n")  # no recipe: it was killed before it began
    assert not [path for path in left if path.exists()]
    assert sorted(path.name for path in folder.path.iterdir()) == [".lock", "recipe.toml"]


def test_a_resumed_run_forgets_what_came_after_its_checkpoint(folder):
    with folder.claimed():
        run = folder.begin("new", "seed = 0\n")
        for step in (1, 2, 3):
            run.tell({"event": "step", "step": step})
            if step == 2:
                checkpoint.save(folder.checkpoint, step, {"step": step})
    with folder.log.open("a") as file:
        file.write('{"event": "st')
    with folder.claimed():
        folder.begin("resume", "")
    steps = read_log(folder.log)
    assert [event["step"] for event in steps.of("step")] == [1, 2]
    assert steps.skipped == 0
    assert "1 damaged lines of the log were skipped" in steps.of("note")[0]["text"]


def test_stages_are_announced_and_their_progress_reported(folder):
    events = []
    with folder.claimed():
        report = folder.begin("new", "seed = 0\n", events.append).stage("split")
        report(1, 2)
    begun, moved = {"event": "stage", "name": "split"}, {"event": "progress", "name": "split", "done": 1, "total": 2}
    assert events == [begun, moved]


def test_a_run_that_lacks_its_last_file_is_not_finished(folder):
    folder.path.mkdir()
    for file in (folder.measured, folder.result):
        assert not folder.finished
        file.write_text("{}")
    assert folder.finished


def test_the_numbers_stay_where_weights_are_dropped(folder):
    for place in (folder.path, folder.path / "seed-1"):
        (place / "model").mkdir(parents=True)
        (place / "checkpoint" / "step-00000001").mkdir(parents=True)
        (place / "test.npz").write_text("vectors")
        (place / "result.json").write_text("{}")
    folder.drop_weights()
    left = sorted(str(path.relative_to(folder.path)) for path in folder.path.rglob("*") if path.is_file())
    assert left == ["result.json", "seed-1/result.json"]
    assert not list(folder.path.rglob("model"))


def test_a_damaged_checkpoint_is_not_resumed(folder):
    with folder.claimed():
        folder.begin("new", "seed = 0\n")
        checkpoint.save(folder.checkpoint, 1, {"step": 1})
    (folder.checkpoint / "step-00000001" / "state.json").write_text("{}")
    with pytest.raises(UserError, match="is damaged"), folder.claimed():
        folder.begin("resume", "")


def test_somebody_elses_hidden_file_is_no_leftover(folder):
    folder.path.mkdir()
    (folder.path / ".profile").write_text("mine")
    with pytest.raises(UserError, match="exists and is not a run"):
        folder.check("new")
    (folder.path / ".profile").rename(folder.path / ".result.json.1-ab.partial")
    folder.check("new")


def test_differences_of_recipes_are_sentences():
    old = {"a": 1, "same": (1, 2), "train": {"steps": 5}}
    new = {"b": 2, "same": [1, 2], "train": {"steps": 9}}
    assert differences(old, new) == [
        "a was 1 and is now not set",
        "b was not set and is now 2",
        "train.steps was 5 and is now 9",
    ]


def test_results_are_read_as_they_were_saved(folder):
    folder.path.mkdir()
    result = evaluate(torch.eye(4), [0, 0, 1, 1], metrics=["map@r"])
    rows = [NamedResult("ours", "model", True, result), NamedResult("pixels", "baseline", False, result)]
    save_results(folder, rows)
    loaded = load_results(folder)
    assert [row[:3] for row in loaded] == [row[:3] for row in rows]
    assert [row.result.to_json() for row in loaded] == [result.to_json()] * 2
