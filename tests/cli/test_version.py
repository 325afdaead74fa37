"""One version, that of the installed package."""

import os
import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

import lookalike
import lookalike_command
from lookalike.cli import app


def test_the_command_line_and_the_package_say_the_same_version():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"lookalike {version('lookalike')}\n")
    assert lookalike.__version__ == version("lookalike")


def test_the_package_has_no_other_lazy_attribute():
    with pytest.raises(AttributeError, match="has no attribute 'verzion'"):
        _ = lookalike.verzion


def test_only_the_command_changes_the_environment(monkeypatch, capsys):
    monkeypatch.setenv("GOMP_SPINCOUNT", "to be restored")
    monkeypatch.delenv("GOMP_SPINCOUNT")
    monkeypatch.setattr("sys.argv", ["lookalike", "--version"])
    quick = "import sys, lookalike_command; assert 'torch' not in sys.modules and 'lookalike' not in sys.modules"
    subprocess.run([sys.executable, "-c", quick], check=True)  # so that torch is loaded after it
    with pytest.raises(SystemExit, match="0"):
        lookalike_command.main()
    assert os.environ["GOMP_SPINCOUNT"] == "20000"
    assert capsys.readouterr().out == f"lookalike {version('lookalike')}\n"
