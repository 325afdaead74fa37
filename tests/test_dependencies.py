"""What the package imports is what it asks for: always what files import first of all, else what an extra brings."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DISTRIBUTIONS = packages_distributions()
ROOMS_OF_EXTRAS = {
    "lookalike/search/serve": "serve",
    "lookalike/discover/review": "serve",
    "lookalike/search/stores/postgres": "pgvector",
}
BY_NAME = {"import_module", "find_spec", "library"}  # functions that are given the name of a module
DEFERRED = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def requirements(*extras: str) -> set[str]:
    lines = PROJECT["dependencies"] if not extras else []
    lines = lines + [line for extra in extras for line in PROJECT["optional-dependencies"][extra]]
    return {canonicalize_name(Requirement(line).name) for line in lines}


EXTRAS = Requirement(PROJECT["optional-dependencies"]["all"][0]).extras


def imports(nodes: list[ast.AST], at_once: bool = True) -> Iterator[tuple[str, bool]]:
    """Every module of others that a file names, and whether it is loaded together with the file."""
    for node in nodes:
        named: list[str] = []
        if isinstance(node, ast.Import):
            named = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            named = [node.module or ""]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in BY_NAME:
            named = [each.value for each in node.args if isinstance(each, ast.Constant)]
            at_once = False
        tops = {name.partition(".")[0] for name in named}
        yield from ((top, at_once) for top in tops - sys.stdlib_module_names - {"lookalike", "lookalike_command", ""})
        typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        inside = at_once and not typing and not isinstance(node, DEFERRED)
        yield from imports(list(ast.iter_child_nodes(node)), inside)


@cache
def found() -> tuple[tuple[str, str, bool], ...]:
    """The file, the package that it needs, and whether it does so when it is loaded."""
    return tuple(
        (str(path.relative_to(SOURCE)), canonicalize_name(DISTRIBUTIONS.get(module, [module])[0]), at_once)
        for path in sorted(SOURCE.rglob("*.py"))
        for module, at_once in imports(ast.parse(path.read_text(encoding="utf-8")).body)
    )


def test_what_is_imported_first_of_all_is_always_installed():
    missing = set()
    for file, package, at_once in found():
        extra = next((extra for room, extra in ROOMS_OF_EXTRAS.items() if file.startswith(room)), None)
        allowed = requirements() | (requirements(extra) if extra else set())
        if at_once and package not in allowed:
            missing.add((file, package))
    assert missing == set()


def test_what_is_imported_later_comes_with_an_extra():
    everything = requirements() | requirements(*EXTRAS)
    used = {package for _, package, _ in found()}
    assert used - everything == set()
    assert len(used) > 20


def test_every_dependency_is_imported():
    unused = requirements() - {package for _, package, _ in found()}
    assert unused == set()


def test_imports_are_told_apart():
    text = "import a.b\nif TYPE_CHECKING:\n    import c\ndef f():\n    from d import e\nx = find_spec('g')\nimport os"
    assert set(imports(ast.parse(text).body)) == {("a", True), ("c", False), ("d", False), ("g", False)}
