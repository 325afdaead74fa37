"""The house has floors: a file imports only from lower layers or from its own room [architecture layers]."""

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import lookalike

ARCHITECTURE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text()
TREE, SECTION = re.split('<a id="tree"></a>|<a id="layers"></a>|<a id="conventions"></a>', ARCHITECTURE)[1:3]
LAYERS = [
    set(re.findall(r"`(\w+)`", entry.split("\n\n")[0])) for entry in re.split(r"^\d+\. ", SECTION, flags=re.M)[1:]
]
FLOOR = {name: number for number, names in enumerate(LAYERS) for name in names}
ROOT = Path(lookalike.__file__).parent
HOUSE = Path(__file__).parents[1]
TRACKED = subprocess.run(["git", "ls-files"], cwd=HOUSE, capture_output=True, text=True, check=True).stdout.splitlines()
AROUND = {name.split("/")[0] for name in TRACKED if "/" in name and not name.startswith((".", "src/"))}


@cache
def read(file: Path) -> tuple[set[str], list[tuple[str, set[str]]]]:
    """The dotted names that a file imports, anywhere in it, and its classes with their bases."""
    names, classes = set(), []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ClassDef):
            classes.append((node.name, {ast.unparse(base).split("[")[0] for base in node.bases}))
    return names, classes


def imports_of(file: Path) -> set[str]:
    """The rooms of the package that a file imports."""
    return {name.split(".")[1] for name in read(file)[0] if name.startswith("lookalike.")}


def test_the_map_names_only_what_is_there():
    there = {part.lstrip(".").partition(".")[0] for name in TRACKED for part in Path(name).parts}
    named = {name.strip("./").partition(".")[0] for name in re.findall(r"`([\w./]+)`", TREE)}
    assert named - there == set()


def test_the_map_names_every_room():
    rooms = {file.stem for file in ROOT.iterdir() if file.suffix == ".py" or (file / "__init__.py").exists()}
    rooms -= {"__init__", "__main__"}
    inside, around = (
        [name for cell in re.findall(r"^\| (`.+?) \|", part, re.M) for name in re.findall(r"`(\w+)", cell)]
        for part in TREE.split("Around the package:")
    )
    assert sorted(inside) == sorted(FLOOR) == sorted(rooms)
    assert sorted(around) == sorted(AROUND)


LIGHT = """
import os, sys
before = dict(os.environ)
import lookalike, lookalike.data, lookalike.evaluation
heavy = {"PIL", "faiss", "matplotlib", "numba", "rich", "scipy", "simplejpeg", "sklearn", "typer"} & set(sys.modules)
assert not heavy, heavy
assert os.environ == before
"""


def test_an_import_loads_nothing_heavy_and_leaves_the_environment_alone():
    subprocess.run([sys.executable, "-c", LIGHT], check=True)


def test_files_import_only_from_lower_layers():
    for file in ROOT.rglob("*.py"):
        room = file.relative_to(ROOT).parts[0].removesuffix(".py")
        if room in ("__init__", "__main__"):
            continue
        assert room in FLOOR, f"{file} belongs to no layer: add its room to docs/architecture.md"
        for other in imports_of(file) - {room}:
            assert FLOOR[other] < FLOOR[room], f"{file.relative_to(ROOT)} imports {other}, which is not below it"


def test_no_folder_is_imported_by_the_package_or_in_a_circle():
    folders: dict[str, set[str]] = {}
    for file in (HOUSE / name for name in TRACKED if name.endswith(".py")):
        folder = file.relative_to(HOUSE).parts[0]
        if file.exists():
            folders.setdefault(folder, set()).update({name.split(".")[0] for name in read(file)[0]} & AROUND - {folder})
    assert not folders["src"]
    assert not folders["papers"]
    TopologicalSorter(folders).prepare()  # raises a CycleError that names the folders


def test_no_class_of_ours_inherits_from_another():
    classes = [each for file in ROOT.rglob("*.py") for each in read(file)[1]]
    ours = {name for name, _ in classes} - {"UserError"}  # `except` tells errors apart by their classes
    for name, bases in classes:  # a dotted base such as torch.utils.data.Dataset is somebody else's
        assert not bases & ours, f"{name} inherits from {bases & ours}"


def test_no_file_name_says_nothing():
    assert not [file for file in ROOT.rglob("*.py") if file.stem in {"utils", "helpers", "common", "misc", "base"}]
