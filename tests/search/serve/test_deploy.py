"""The files in deploy/ name commands, options and paths that are there; neither Docker nor systemd run here."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from lookalike.cli import app

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()


def check_command(words: list[str]) -> None:
    """A command line that `lookalike` parses."""
    assert Path(words[0]).name == "lookalike"
    verb = get_command(app).commands[words[1]]
    verb.make_context(words[1], list(words[2:]))


def test_dockerfile():
    instructions = [
        line.split(maxsplit=1) for line in re.sub(r"\\\n", "", DOCKERFILE).splitlines() if line[:1].isalpha()
    ]
    assert instructions[0][0] == "FROM"
    assert [name for name, _ in instructions].index("USER") < [name for name, _ in instructions].index("ENTRYPOINT")
    for name, words in instructions:
        if name == "COPY":
            assert all((ROOT / source).exists() for source in words.split()[:-1]), words
        if name == "ENTRYPOINT":
            check_command(json.loads(words))
        if name == "HEALTHCHECK":
            code = json.loads(words.partition("CMD ")[2])[2]
            compile(code, "healthcheck", "exec")
            assert "/v1/health" in code
    extras = re.search(r"'\.\[([\w,]+)\]'", DOCKERFILE)[1].split(",")
    assert set(extras) <= set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(ROOT / "deploy" / "lookalike.service")
    return parser


def test_systemd_unit():
    service = unit()["Service"]
    check_command(shlex.split(service["ExecStart"]))
    assert service["Restart"] == "always"
    from lookalike.search.serve.server import GRACE

    assert int(service["TimeoutStopSec"]) > GRACE
    assert service["ProtectSystem"] == "strict"


def test_systemd_accepts_the_unit(tmp_path):
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("systemd is not installed here")
    copy = tmp_path / "lookalike.service"
    text = (ROOT / "deploy" / "lookalike.service").read_text()
    copy.write_text(re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", text))
    done = subprocess.run([tool, "verify", str(copy)], capture_output=True, text=True, check=False)
    assert "lookalike.service" not in done.stderr, done.stderr
