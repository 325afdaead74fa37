"""What a stranger meets first: how to install it, how to cite it, and the workflows that test and publish it."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOR_DEVELOPERS = {"docs", "bench", "bench-search", "test"}
README, INSTALL = (ROOT / "README.md").read_text(), (ROOT / "docs" / "install.md").read_text()
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github" / "workflows").glob("*.yml")}


def test_all_is_every_extra_of_users():
    [line] = EXTRAS["all"]
    assert Requirement(line).name == PROJECT["name"]
    assert Requirement(line).extras == EXTRAS.keys() - FOR_DEVELOPERS - {"all"}


def test_the_install_page_lists_every_extra_of_users():
    table = INSTALL.partition("| extra | for |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    listed = [name for row in rows for name in re.findall(r"`([\w-]+)`", row)]
    assert sorted(listed) == sorted(EXTRAS.keys() - FOR_DEVELOPERS - {"all"})


def test_pages_install_extras_that_are_there():
    named = {name for names in re.findall(r"install .*?\[([\w,-]+)\]", README + INSTALL) for name in names.split(",")}
    assert named
    assert named <= EXTRAS.keys()


def test_every_extra_has_a_tested_version():
    """constraints.txt pins what each extra asks for, within the bounds that the extra states."""
    lines = [line.partition("#")[0].strip() for line in (ROOT / "constraints.txt").read_text().splitlines()]
    pinned = {canonicalize_name(pin.name): pin for pin in map(Requirement, filter(None, lines))}
    for extra, requirements in {"": PROJECT["dependencies"], **EXTRAS}.items():
        for wanted in map(Requirement, requirements):
            if wanted.name != PROJECT["name"]:
                [exact] = pinned[canonicalize_name(wanted.name)].specifier
                assert wanted.specifier.contains(exact.version), f"{extra}: {wanted}"


def test_citation_names_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])


def test_matrix_covers_what_the_project_promises():
    matrix = WORKFLOWS["test"]["jobs"]["test"]["strategy"]["matrix"]
    promised = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if "Python :: 3." in name]
    assert matrix["python"] == promised
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos"}
    [torch] = [Requirement(line) for line in PROJECT["dependencies"] if line.startswith("torch")]
    [oldest] = [Requirement(each["versions"]) for each in matrix["include"] if "==" in each["versions"]]
    assert torch.specifier == SpecifierSet(str(oldest.specifier).replace("==", ">=").removesuffix(".*"))
    assert any("--upgrade torch" in each["versions"] for each in matrix["include"])


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_may_do_only_what_they_say(name):
    """Actions are named by commit; nothing is allowed by default; only signing gets an identity."""
    assert WORKFLOWS[name]["permissions"] == {}
    for job, content in WORKFLOWS[name]["jobs"].items():
        allowed = {"contents": "read"} if job in ("test", "build") else {"id-token": "write"}
        assert content["permissions"] == allowed | ({"attestations": "write"} if job == "attest" else {})
        for step in content["steps"]:
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step.get("uses", f"x@{0:040}")), step
            for script in re.findall(r"\bscripts/\w+", step.get("run", "")):
                assert (ROOT / script).is_file()


def test_a_release_is_attested_before_it_is_published():
    jobs = WORKFLOWS["release"]["jobs"]
    assert (jobs["attest"]["needs"], jobs["publish"]["needs"]) == ("build", "attest")
    assert jobs["publish"]["environment"]


def test_long_tests_are_named():
    page = (ROOT / "docs" / "reliability.md").read_text()
    files = [file for file in (ROOT / "tests").rglob("test_*.py") if "@pytest.mark.long\n" in file.read_text()]
    assert files
    assert [str(file.relative_to(ROOT)) for file in files if f"`{file.relative_to(ROOT)}`" not in page] == []
