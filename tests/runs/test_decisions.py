"""The decisions of a run on disk: kept over a stop, whole or refused in one line."""

import pytest

from lookalike.errors import UserError
from lookalike.runs import RunFolder


def begin(path, intent="either"):
    return RunFolder(path).begin(intent, "seed = 0\n")


def test_a_resumed_run_knows_what_was_decided(tmp_path):
    first = begin(tmp_path, "new")
    assert first.decisions.get("sample") is None
    first.decisions.make("sample", 400)
    first.decisions.make("plan", {"steps": [[0, 30]]})
    first.decisions.make("sample", 500)
    again = begin(tmp_path)
    assert (again.decisions.get("sample"), again.decisions.get("plan")) == (500, {"steps": [[0, 30]]})
    again.decisions.make("delivered", "raw pixels")
    assert begin(tmp_path).decisions.get("sample") == 500
    assert begin(tmp_path, "fresh").decisions.get("sample") is None


@pytest.mark.parametrize("content", ["{", "[1]", "[" * 100_000])
def test_damaged_decisions_are_refused_in_one_line(tmp_path, content):
    begin(tmp_path, "new")
    RunFolder(tmp_path).decisions.write_text(content)
    with pytest.raises(UserError, match="start again with --fresh or a new --out") as raised:
        begin(tmp_path)
    assert "\n" not in str(raised.value)
