"""The files in deploy/ name commands, options and paths that are there; neither Docker nor systemd run here."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from typer.main import get_command

from lookalike.cli import app
from lookalike.search.serve.server import FILES, MARGIN
from lookalike.search.serve.settings import Settings

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
COMPOSE_TEXT = (ROOT / "deploy" / "compose.yaml").read_text()
COMPOSE = yaml.safe_load(COMPOSE_TEXT)


def check_command(words: list[str]) -> None:
    """A command line that `lookalike` parses."""
    assert Path(words[0]).name == "lookalike"
    verb = get_command(app).commands[words[1]]
    verb.make_context(words[1], list(words[2:]))


def test_dockerfile():
    instructions = [
        line.split(maxsplit=1) for line in re.sub(r"\\\n", "", DOCKERFILE).splitlines() if line[:1].isalpha()
    ]
    # the digest of an image cannot be looked up while tests run: whoever builds must name one
    assert instructions[:2] == [["ARG", "PYTHON"], ["FROM", "${PYTHON}"]]
    assert "--build-arg PYTHON=python@sha256:" in DOCKERFILE
    assert "-c constraints.txt" in DOCKERFILE
    assert ["ARG", "TORCH=cpu"] in instructions
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
    assert '".[${EXTRAS}]"' in DOCKERFILE
    extras = dict(words.partition("=")[::2] for name, words in instructions if name == "ARG")["EXTRAS"].split(",")
    assert {"serve", "hf"} < set(extras)
    assert set(extras) <= set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def test_compose():
    """The server waits for a healthy database that keeps its data, and asks for what nobody may leave out."""
    services = COMPOSE["services"]
    for service in ("server", "index"):
        check_command([*services[service]["entrypoint"], *services[service]["command"]])
        assert services[service]["depends_on"]["database"]["condition"] == "service_healthy"
        assert (ROOT / "deploy" / services[service]["build"]["context"]).resolve() == ROOT
        assert (ROOT / services[service]["build"]["dockerfile"]).is_file()
    assert "healthcheck" not in services["server"], "the image has one, on the same port"
    volume = services["database"]["volumes"][0].partition(":")[0]
    assert volume in COMPOSE["volumes"]
    assert "pg_isready" in services["database"]["healthcheck"]["test"]
    names = set(re.findall(r"\$\{(\w+)", COMPOSE_TEXT))
    assert names == set(re.findall(r"\$\{(\w+):\?", COMPOSE_TEXT)), "without a value compose must refuse to start"
    assert names == set(re.findall(r"^#     (\w+)=", COMPOSE_TEXT, re.M)), "the comment lists what .env holds"


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(ROOT / "deploy" / "lookalike.service")
    return parser


def test_systemd_unit():
    service = unit()["Service"]
    check_command(shlex.split(service["ExecStart"]))
    assert service["Restart"] == "always"
    assert int(service["TimeoutStopSec"]) > MARGIN * Settings("shop").grace
    assert service["ProtectSystem"] == "strict"
    assert service["UMask"] == "0077"
    assert service["CapabilityBoundingSet"] == service["AmbientCapabilities"] == ""
    assert service["SystemCallFilter"] == "@system-service"
    assert int(service["LimitNOFILE"]) >= 2 * Settings("shop").connections + FILES


def test_systemd_accepts_the_unit(tmp_path):
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("systemd is not installed here")
    copy = tmp_path / "lookalike.service"
    text = (ROOT / "deploy" / "lookalike.service").read_text()
    copy.write_text(re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", text))
    done = subprocess.run([tool, "verify", str(copy)], capture_output=True, text=True, check=False)
    assert "lookalike.service" not in done.stderr, done.stderr


def pins() -> dict[str, Version]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {name: Version(version) for name, version in pairs}


def test_one_version_of_whatever_an_extra_installs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    direct = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    known, waiting, seen = pins(), [Requirement(line) for line in direct], set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name == project["name"]:  # an extra of extras, which are here already
            continue
        assert name in known, f"add {name} to constraints.txt"
        assert known[name] in requirement.specifier, f"{requirement} is not {known[name]}"
        if (name, *requirement.extras) not in seen:
            seen.add((name, *requirement.extras))
            waiting += needs(name, requirement.extras)


def needs(name: str, extras: set[str]) -> list[Requirement]:
    """What an installed package needs on this machine; those of extras that are not installed are not known."""
    try:
        lines = [Requirement(line) for line in metadata.requires(name) or ()]
    except metadata.PackageNotFoundError:
        return []
    kinds = [{"extra": extra} for extra in ("", *extras)]
    needed = [each for each in lines if each.marker is None or any(map(each.marker.evaluate, kinds))]
    return [each for each in needed if each.name != "setuptools"]
