"""The wheel is complete: installed into an empty environment, away from the repository, it trains and reports."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).parents[1]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
SHORT = ["--set", "train.steps=2", "--set", "train.validate_every=2", "--set", "model.width=8"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory) -> Path:
    """A virtual environment that holds the wheel and borrows everything else from this one."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    install = ["install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run([sys.executable, "-m", "pip", "--python", python, *install], check=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    # a path in a .pth file is searched last, and the .pth files in it (an editable install of ours) are not read
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def run(environment: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    variables |= {"XDG_CACHE_HOME": str(cwd / "cache")}
    command = [environment / "bin" / words[0], *words[1:]]
    return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True)


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(wheel):
    package = ROOT / "src" / "lookalike"
    listed = subprocess.run(["git", "ls-files", "."], cwd=package, capture_output=True, text=True, check=True)
    expected = {f"lookalike/{name}" for name in listed.stdout.splitlines() if (package / name).exists()}
    assert {Path(name).suffix for name in expected} >= {".py", ".css", ".js", ".json", ".toml", ".txt", ".typed"}
    assert expected <= set(zipfile.ZipFile(wheel).namelist())


@pytest.mark.long
def test_the_installed_wheel_is_the_version_of_pyproject(environment, tmp_path):
    assert run(environment, tmp_path, "lookalike", "--version").stdout == f"lookalike {VERSION}\n"
    code = "import lookalike; print(lookalike.__version__, lookalike.__file__)"
    version, place = run(environment, tmp_path, "python", "-c", code).stdout.split()
    assert version == VERSION
    assert Path(place).is_relative_to(environment)


@pytest.mark.long
def test_the_installed_wheel_trains_on_glyphs_and_writes_a_report(environment, tmp_path):
    completed = run(environment, tmp_path, "lookalike", "fit", "--out", "run", *SHORT)
    assert completed.returncode == 0, completed.stderr
    assert "</html>" in (tmp_path / "run" / "report.html").read_text()
    again = run(environment, tmp_path, "lookalike", "evaluate", "run/test.npz", "--json")
    assert again.returncode == 0, again.stderr


@pytest.mark.long
def test_the_installed_wheel_serves_a_page(environment, tmp_path):
    for words in (("fit", "--out", "run", *SHORT), ("index", "run/model", "glyphs", "--out", "shop.index")):
        completed = run(environment, tmp_path, "lookalike", *words)
        assert completed.returncode == 0, completed.stderr
    command = [environment / "bin" / "lookalike", "serve", "shop.index", "--port", "0", "--no-log"]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with subprocess.Popen(command, cwd=tmp_path, env=variables, stderr=subprocess.PIPE, text=True) as server:
        try:
            address = re.search(r"http://[\w.:]+", server.stderr.readline()).group()
            assert "</html>" in urlopen(address, timeout=60).read().decode()
        finally:
            server.terminate()


@pytest.mark.long
def test_the_source_distribution_builds_the_same_wheel(wheel, tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t"]
    subprocess.run([*build, "sdist", "-d", tmp_path], cwd=ROOT, check=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as source:
        source.extractall(tmp_path, filter="data")
    folder = next(path for path in tmp_path.iterdir() if path.is_dir())
    subprocess.run([*build, "wheel", "-d", tmp_path], cwd=folder, check=True)
    assert next(tmp_path.glob("*.whl")).read_bytes() == wheel.read_bytes()
