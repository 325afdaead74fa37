"""docs/serve.md is true: its commands and its client run as pasted, its table of attempts names tests that exist."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.missing import missing
from tests.search.serve import test_security
from tests.search.serve.client import Server
from tests.search.serve.conftest import encoded

PAGE = (Path(__file__).parents[3] / "docs" / "serve.md").read_text()
CLIENT = re.search(r"```python\n(.*?)```", PAGE, re.S)[1]
LINES = [line for line in PAGE.splitlines() if line.startswith("curl ")]


@pytest.fixture
def served(shop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "query.jpg").write_bytes(encoded())
    with Server(shop) as server:
        yield server


def test_commands_and_client_run_as_pasted(served, capsys):
    if shutil.which("curl") is None:
        missing("curl is not installed")
    assert len(LINES) >= 12
    for line in LINES:
        words = shlex.split(line.replace("localhost:8000", f"localhost:{served.port}"))
        words[1:1] = ["--silent", "--show-error", "--fail-with-body"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        if "thumbnail" not in line and "metrics" not in line:
            assert "error" not in json.loads(done.stdout), line
    assert Path("small.jpg").read_bytes().startswith(b"\xff\xd8")
    assert len(CLIENT.split("\n\n\nfor hit")[0].strip().splitlines()) <= 30
    space: dict = {}
    exec(compile(CLIENT.replace("localhost:8000", f"localhost:{served.port}"), "docs/serve.md", "exec"), space)
    assert capsys.readouterr().out.count("figs") >= 3
    assert (
        space["Shop"](f"http://localhost:{served.port}").add("query.jpg", id="by the client")["id"] == "by the client"
    )


def test_every_attempt_has_its_test():
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    there = {name for name in vars(test_security) if name.startswith("test_")}
    assert named - there == set()
    assert there - named == set(), "add it to the table in docs/serve.md"
