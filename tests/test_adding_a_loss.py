"""Adding a loss is one file, one line and one test: the example of CONTRIBUTING.md, done in a copy of the tree."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NEEDED = [
    "README.md",
    "pyproject.toml",
    "docs/loss_tables.py",
    "docs/analysis.md",
    "docs/losses.md",
    "tests/conftest.py",
]
STEP = re.compile(r"^\d\. `([^`]+)`.*?```python\n(.*?)```", re.M | re.S)
NAME = "decoupled_contrastive"
TABLES = ["-m", "docs.loss_tables", "counts", "losses"]
TESTS = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not plain and not slow", "-k", f"{NAME} or the_tables"]
FILES = [
    f"tests/losses/test_{NAME}.py",
    "tests/losses/test_presets.py",
    "tests/contracts",
    "tests/losses/test_tables.py",
]


@pytest.fixture
def copy(tmp_path):
    for file in NEEDED:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    for folder in ("src/lookalike", "tests/contracts", "tests/losses"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def changed(copy):
    """Files of the copy that differ from those of the tree, or are new."""
    files = [file.relative_to(copy) for file in copy.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    return {str(file) for file in files if not same(ROOT / file, copy / file)}


def same(before, after):
    return before.is_file() and before.read_bytes() == after.read_bytes()


def run(copy, *arguments):
    environment = os.environ | {"PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy}", "LOOKALIKE_SHAPES": "off"}
    ended = subprocess.run([sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_three_files_are_edited_and_the_contracts_hold(copy):
    steps = [(file, textwrap.dedent(code)) for file, code in STEP.findall((ROOT / "CONTRIBUTING.md").read_text())]
    for file, code in steps:
        place = copy / file
        if place.exists():  # the line stands among its like, in alphabetical order
            lines = place.read_text().splitlines(keepends=True)
            after = max(
                number for number, line in enumerate(lines) if line.startswith("from lookalike.") and line < code
            )
            place.write_text("".join([*lines[: after + 1], code, *lines[after + 1 :]]))
        else:
            place.write_text(code)
    assert len(changed(copy)) == 3
    run(copy, *TABLES)
    printed = run(copy, *TESTS, *FILES)
    passed = re.search(r"(\d+) passed", printed)
    assert passed is not None
    assert int(passed[1]) > 30, printed
    assert changed(copy) - {file for file, _ in steps} == {"README.md", "docs/losses.md"}, (
        "besides, only generated tables"
    )
    assert f"losses/{NAME}.py" in (copy / "docs" / "losses.md").read_text()
