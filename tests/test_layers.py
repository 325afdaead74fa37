"""The house has floors: a file imports only from lower layers or from its own room [architecture layers]."""

import ast
import re
from pathlib import Path

import lookalike

ARCHITECTURE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text()
TREE, SECTION = re.split('<a id="tree"></a>|<a id="layers"></a>|<a id="conventions"></a>', ARCHITECTURE)[1:3]
LAYERS = [
    set(re.findall(r"`(\w+)`", entry.split("\n\n")[0])) for entry in re.split(r"^\d+\. ", SECTION, flags=re.M)[1:]
]
FLOOR = {name: number for number, names in enumerate(LAYERS) for name in names}
ROOT = Path(lookalike.__file__).parent


def imports_of(file: Path) -> set[str]:
    """The rooms of the package that a file imports, anywhere in it."""
    rooms = set()
    for node in ast.walk(ast.parse(file.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("lookalike.")}
    return rooms


def test_the_map_names_every_room():
    rooms = {file.stem for file in ROOT.iterdir() if file.suffix == ".py" or (file / "__init__.py").exists()}
    rooms -= {"__init__", "__main__"}
    named = [name for cell in re.findall(r"^\| (`.+?) \|", TREE, re.M) for name in re.findall(r"`(\w+)", cell)]
    assert sorted(named) == sorted(rooms)
    assert sorted(FLOOR) == sorted(rooms)


def test_files_import_only_from_lower_layers():
    for file in ROOT.rglob("*.py"):
        room = file.relative_to(ROOT).parts[0].removesuffix(".py")
        if room in ("__init__", "__main__"):
            continue
        assert room in FLOOR, f"{file} belongs to no layer: add its room to docs/architecture.md"
        for other in imports_of(file) - {room}:
            assert FLOOR[other] < FLOOR[room], f"{file.relative_to(ROOT)} imports {other}, which is not below it"


def test_no_class_of_ours_inherits_from_another():
    trees = [ast.parse(file.read_text()) for file in ROOT.rglob("*.py")]
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    ours = {node.name for node in classes} - {"UserError"}  # `except` tells errors apart by their classes
    for node in classes:
        # a dotted base such as torch.utils.data.Dataset is somebody else's
        bases = {ast.unparse(base).split("[")[0] for base in node.bases}
        assert not bases & ours, f"{node.name} inherits from {bases & ours}"


def test_no_file_name_says_nothing():
    assert not [file for file in ROOT.rglob("*.py") if file.stem in {"utils", "helpers", "common", "misc", "base"}]
