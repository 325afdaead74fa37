"""`lookalike list`: the catalogues, for people and for programs; a misspelt kind is one line and exit code 2."""

import json
from runpy import run_module

import pytest
from typer.testing import CliRunner

from lookalike import losses
from lookalike.cli import app
from lookalike.cli.list_members import CATALOGUES


@pytest.mark.parametrize("kind", CATALOGUES)
def test_every_catalogue_is_listed_with_what_its_members_do(kind):
    rows = json.loads(CliRunner().invoke(app, ["list", kind, "--json"]).stdout)
    assert [row["name"] for row in rows] == sorted(CATALOGUES[kind])
    assert all(row["does"].endswith(".") for row in rows), [
        row["name"] for row in rows if not row["does"].endswith(".")
    ]


def test_losses_are_listed_with_settings_and_presets():
    output = CliRunner().invoke(app, ["list", "losses"]).stdout
    assert all(name in output for name in losses.names())
    assert "settings: alpha, beta, threshold" in output
    assert "presets: cars, cub, inshop, roth, sop" in output


def test_the_kinds_are_listed():
    assert CliRunner().invoke(app, ["list"]).stdout.split() == list(CATALOGUES)


def test_a_misspelt_kind_is_one_line_and_exit_code_2(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["lookalike", "list", "loses"])
    with pytest.raises(SystemExit, match="2"):
        run_module("lookalike", run_name="__main__")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("lookalike: unknown kind 'loses': did you mean 'losses'?")
    assert len(shown.err.splitlines()) == 1


@pytest.mark.parametrize("verb", [command.name for command in app.registered_commands])
def test_help_of_every_verb_ends_in_an_example(verb):
    last = CliRunner().invoke(app, [verb, "--help"]).stdout.strip().split("\n\n")[-1]
    assert last.strip().startswith(f"Example: lookalike {verb}")
