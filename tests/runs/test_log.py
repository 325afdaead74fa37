"""The log on disk: events as lines, rewound for a run that goes on, whole after a crash."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from lookalike.errors import UserError
from lookalike.runs.log import read_log
from lookalike.training import JsonLines, TensorBoard, Tracker, to_all
from tests.missing import missing


def test_events_are_lines_and_progress_is_not_kept(tmp_path):
    log, seen = JsonLines(tmp_path / "log.jsonl"), []
    tell = to_all(log, seen.append)
    sent = [
        {"event": "note", "text": "漢字 ☃"},
        {"event": "progress", "done": 1},
        {"event": "step", "step": 1, "loss": 0.5},
    ]
    for event in sent:
        tell(event)
    assert seen == sent
    assert read_log(tmp_path / "log.jsonl").events == [sent[0], sent[2]]
    assert "漢字" in (tmp_path / "log.jsonl").read_text(encoding="utf-8")


def test_rewound_to_a_checkpoint(tmp_path):
    log = JsonLines(tmp_path / "log.jsonl")
    for event in (
        {"event": "start"},
        *({"event": "step", "step": step} for step in range(1, 9)),
        {"event": "end", "step": 8},
    ):
        log(event)
    log.rewind(5)
    assert read_log(log.path).events == [{"event": "start"}, *({"event": "step", "step": step} for step in range(1, 6))]
    log.rewind(-1)
    assert read_log(log.path).events == [{"event": "start"}]


def test_a_line_cut_off_by_a_crash_is_forgotten(tmp_path):
    log = JsonLines(tmp_path / "log.jsonl")
    log({"event": "step", "step": 1})
    whole = log.path.read_text()
    for cut in range(1, len(whole)):
        log.path.write_text(whole + whole[:cut].rstrip("\n"))
        assert read_log(log.path).events in ([json.loads(whole)], [json.loads(whole)] * 2)
        log.rewind(1)
        log({"event": "step", "step": 2})
        assert read_log(log.path).events[-1] == {"event": "step", "step": 2}
        log.path.unlink()


def test_a_bad_line_costs_only_itself(tmp_path):
    log = JsonLines(tmp_path / "log.jsonl")
    for step in (1, 2, 3):
        log({"event": "step", "step": step})
    lines = log.path.read_bytes().splitlines(keepends=True)
    log.path.write_bytes(lines[0] + b'{"event": "st\n' + b"\xff\xfe\n" + b'["event"]\n{"text": "no kind"}\n' + lines[2])
    contents = read_log(log.path)
    assert [event["step"] for event in contents.of("step")] == [1, 3]
    assert contents.skipped == 4
    log.rewind(3)
    assert read_log(log.path) == (contents.events, 0)


def test_a_place_that_cannot_be_written(tmp_path):
    with pytest.raises(UserError, match="free some space, then continue with --resume"):
        JsonLines(tmp_path / "no" / "log.jsonl")({"event": "note"})


def test_tensorboard_makes_no_folder_before_there_is_something_to_say(tmp_path):
    board = TensorBoard(tmp_path / "tensorboard")
    board({"event": "start"})
    assert not (tmp_path / "tensorboard").exists()
    board({"event": "step", "step": 3, "loss": 0.5})
    board({"event": "end", "step": 3, "seconds": 1.0})
    assert list((tmp_path / "tensorboard").iterdir())
    board.writer.close()


def test_a_tracker_that_is_unknown_or_not_installed(tmp_path, monkeypatch):
    with pytest.raises(UserError, match="unknown tracker 'wandbb': did you mean 'wandb'"):
        Tracker("wandbb", tmp_path)
    monkeypatch.setitem(sys.modules, "trackio", None)
    with pytest.raises(UserError, match="trackio is not installed: pip install trackio"):
        Tracker("trackio", tmp_path)


TRACKED = """
from pathlib import Path
from lookalike.training import Tracker
Path("shoes").mkdir()
tracker = Tracker("wandb", Path("shoes"))
tracker({"event": "start"})
assert not Path("wandb").exists()
tracker({"event": "step", "step": 3, "loss": 0.5})
tracker({"event": "validation", "step": 3, "map@r": 0.25})
tracker({"event": "end", "step": 3, "seconds": 1.5, "best_step": 3})
"""


def test_a_resumed_run_goes_on_in_its_tracker(tmp_path, monkeypatch):
    opened, logged = [], []
    library = SimpleNamespace(init=lambda **how: opened.append(how), log=logged.append, finish=lambda: None)
    monkeypatch.setitem(sys.modules, "wandb", library)
    for step in (3, 6):  # a process each
        tracker = Tracker("wandb", tmp_path / "shoes")
        (tmp_path / "shoes").mkdir(exist_ok=True)
        tracker({"event": "step", "step": step, "epoch": 2, "loss": 0.5, "warm": True, "phase": "head"})
    assert logged == [{"step": step, "step/epoch": 2, "step/loss": 0.5} for step in (3, 6)]
    assert opened[0] == opened[1]
    assert opened[0]["resume"] == "allow"
    assert opened[0]["name"] == f"shoes-{opened[0]['id']}"
    Tracker("wandb", tmp_path)({"event": "step", "step": 3})
    assert opened[2]["id"] != opened[0]["id"]


@pytest.mark.slow
def test_weights_and_biases_keeps_steps_and_validations(tmp_path):
    """The real package, offline, in a process of its own: it writes the file when that ends."""
    if find_spec("wandb") is None:
        missing("wandb is not installed (extra: test)")
    variables = os.environ | {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    subprocess.run([sys.executable, "-c", TRACKED], cwd=tmp_path, env=variables, check=True)
    key = (tmp_path / "shoes" / "tracker.txt").read_text()
    [file] = (tmp_path / "wandb").glob(f"offline-run-*/run-{key}.wandb")
    content = file.read_bytes()
    for name, value in ((b"step/loss", b"0.5"), (b"validation/map@r", b"0.25"), (b"end/seconds", b"1.5")):
        assert re.search(re.escape(name) + rb".{1,4}" + re.escape(value), content, re.DOTALL), name


@pytest.mark.parametrize("line", ['{"event": "step", "step": "x"}', '{"event": 3}', "[" * 100_000, "[]", '{"step": 1}'])
def test_a_line_that_is_no_event_costs_only_itself(tmp_path, line):
    path = tmp_path / "log.jsonl"
    path.write_text('{"event": "step", "step": 1}\n' + line + '\n{"event": "step", "step": 2}\n')
    assert [event["step"] for event in read_log(path).events] == [1, 2]
    assert read_log(path).skipped == 1
    JsonLines(path).rewind(1)
    assert [event["step"] for event in read_log(path).events] == [1]
