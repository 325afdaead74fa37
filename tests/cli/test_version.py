"""One version, that of the installed package."""

from importlib.metadata import version

import pytest
from typer.testing import CliRunner

import lookalike
from lookalike.cli import app


def test_the_command_line_and_the_package_say_the_same_version():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"lookalike {version('lookalike')}\n")
    assert lookalike.__version__ == version("lookalike")


def test_the_package_has_no_other_lazy_attribute():
    with pytest.raises(AttributeError, match="has no attribute 'verzion'"):
        _ = lookalike.verzion
