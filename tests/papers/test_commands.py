"""`python -m papers`: tables, JSON, files, and mistakes in one line."""

import json
from runpy import run_module

import pytest
from typer.testing import CliRunner

from lookalike.errors import UserError
from papers.commands import VERBS, app


def run(*arguments, code=0):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == code, result.exception
    return result.stdout


def mistake(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert isinstance(result.exception, UserError)
    return str(result.exception)


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb_ends_in_an_example(verb):
    last = run(verb, "--help").strip().split("\n\n")[-1]
    assert last.strip().startswith(f"Example: python -m papers {verb}")


def test_a_mistake_is_one_line_and_exit_code_2(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["papers", "reproduce", "--estimate"])
    with pytest.raises(SystemExit, match="2"):
        run_module("papers", run_name="__main__")
    line = "papers: no photos were given: add --cub200 FOLDER, --cars196 FOLDER or --omniglot FOLDER\n"
    assert capsys.readouterr() == ("", line)


def test_theorems():
    output = json.loads(run("theorems", "--cases", 20, "--seed", 3, "--json"))
    assert output["seed"] == 3
    assert {row["verdict"] for row in output["statements"]} == {"holds", "fails"}
    assert "20 cases" in mistake("theorems", "--cases", 1)


def test_an_unexpected_verdict_is_exit_code_1(monkeypatch):
    from lookalike.losses import TopKPrecision

    whole = TopKPrecision.per_query
    monkeypatch.setattr(TopKPrecision, "per_query", lambda self, s, p: whole(TopKPrecision(self.k, 0.0), s, p))
    assert "fails (unexpected): n+ ≥ k: ℓ_k ≥ γ ℓ_Prec (theorem 3)" in run("theorems", "--cases", 40, code=1)


@pytest.mark.slow
def test_toy(tmp_path):
    variants = json.loads(run("toy", "--layout", "diagonal", "--seeds", 1, "--out", tmp_path, "--json"))["diagonal"]
    assert variants["base"]["train"]["mean"] < 0.2 < variants["no attraction alone"]["train"]["mean"]
    assert (tmp_path / "toy_diagonal.png").stat().st_size > 10_000


def test_toy_mistakes():
    assert "did you mean 'diagonal'" in mistake("toy", "--layout", "diagnal")
