"""Mutants: one small change of the syntax tree of one function.

A comparison, an operation, a number or a condition is turned round, a call left out, two arguments are swapped,
nothing is returned. What is left out stays in the tree behind `None and`: the variables of the function are the same,
so that its code can be replaced while it lives.
"""

import ast
import hashlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[2] / "src" / "lookalike"
SWAPS = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}
SYMMETRIC = ("max", "min", "math.gcd", "np.maximum", "np.minimum", "torch.maximum", "torch.minimum")
Function = ast.FunctionDef | ast.AsyncFunctionDef
Change = tuple[str, str, object]


class Mutant(NamedTuple):
    """One change in one function."""

    room: str
    file: str  # below src/lookalike
    function: str
    change: str
    tree: ast.Module  # of the whole file

    @property
    def key(self) -> str:
        whole = f"{self.file} {self.function} {self.change} {ast.unparse(self.tree)}"
        return hashlib.sha256(whole.encode()).hexdigest()[:16]

    @property
    def jitted(self) -> bool:
        return "njit" in "".join(map(ast.unparse, dict(functions(self.tree))[self.function].decorator_list))


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield f"{prefix}{node.name}", node
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")


def places(function: Function) -> Iterator[ast.AST]:
    """Whatever can be changed in the body; annotations, defaults and the docstring are not looked at."""
    for statement in function.body:
        documented = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not documented and not isinstance(statement, ast.Import | ast.ImportFrom):
            typed = [node.annotation for node in ast.walk(statement) if isinstance(node, ast.AnnAssign)]
            left_out = {id(node) for annotation in typed for node in ast.walk(annotation)}
            yield from (
                node for node in ast.walk(statement) if change_of(node) is not None and id(node) not in left_out
            )


def change_of(node: ast.AST) -> Change | None:
    """How a node can be changed: in words, the field, its new value."""
    return _operator(node) or _value(node) or _statement(node)


def _operator(node: ast.AST) -> Change | None:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        new = SWAPS[type(node.ops[0])]()
        return f"{type(node.ops[0]).__name__} → {type(new).__name__}", "ops", [new, *node.ops[1:]]
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in SWAPS:
        swapped = SWAPS[type(node.op)]()
        return f"{type(node.op).__name__} → {type(swapped).__name__}", "op", swapped
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return "minus left out", "op", ast.UAdd()
    return None


def _value(node: ast.AST) -> Change | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        new = not node.value if isinstance(node.value, bool) else node.value + 1
        return f"{node.value} → {new}", "value", new
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        return "condition turned round", "test", ast.UnaryOp(ast.Not(), node.test)
    if isinstance(node, ast.Call) and len(node.args) > 1 and ast.unparse(node.func) not in SYMMETRIC:
        first, second, *more = node.args
        if not any(isinstance(each, ast.Starred) for each in (first, second)) and ast.dump(first) != ast.dump(second):
            return "arguments swapped", "args", [second, first, *more]
    return None


def _statement(node: ast.AST) -> Change | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return f"left out: {ast.unparse(node.value)[:60]}", "value", _never(node.value)
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        return "nothing is returned", "value", _never(node.value)
    return None


def _never(value: ast.expr) -> ast.expr:
    return ast.BoolOp(ast.And(), [ast.Constant(None), value])


def mutants(room: str, each: int, seed: int) -> Iterator[Mutant]:
    """`each` mutants of every function of a room, always the same ones."""
    for path in sorted((SOURCE / room).rglob("*.py")):
        text, file = path.read_text(encoding="utf-8"), str(path.relative_to(SOURCE))
        for name, function in dict(functions(ast.parse(text))).items():
            count = len(list(places(function)))
            for number in random.Random(f"{seed} {file} {name}").sample(range(count), min(each, count)):
                tree = ast.parse(text)
                twin = dict(functions(tree))[name]
                node = list(places(twin))[number]
                words, field, value = change_of(node) or ("", "", None)
                setattr(node, field, value)
                line = f"line {getattr(node, 'lineno', twin.lineno)}: {words}"
                yield Mutant(room, file, name, line, ast.fix_missing_locations(tree))
