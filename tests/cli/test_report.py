"""`lookalike report RUN`: where the page is, for people and for programs."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from lookalike.cli import app
from lookalike.errors import UserError


@pytest.fixture
def folder(tmp_path):
    draw = np.random.default_rng(0)
    np.savez(tmp_path / "test.npz", embeddings=draw.standard_normal((40, 6)).astype("f"), labels=np.arange(40) // 4)
    return tmp_path


def test_the_page_is_written_and_named(folder):
    output = CliRunner().invoke(app, ["report", str(folder)])
    assert output.exit_code == 0, output.output
    assert output.stdout.splitlines()[0] == str(folder / "report.html")
    assert "recall@1" in output.stdout
    assert (folder / "report.html").is_file()


def test_json_has_the_page_and_its_main_numbers(folder):
    output = json.loads(CliRunner().invoke(app, ["report", str(folder), "--json"]).stdout)
    assert output["page"] == str(folder / "report.html")
    assert 0 <= output["results"][0]["metrics"]["map@r"] <= 1


def test_a_folder_without_a_run_is_a_mistake(tmp_path):
    with pytest.raises(UserError, match=r"holds no test.npz"):
        raise CliRunner().invoke(app, ["report", str(tmp_path)]).exception
