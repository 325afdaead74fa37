"""Reference pages that are written when the site is built: command line, recipe keys, HTTP, glossary.

Each is a page of docs/ with a heading and one comment (`<!-- commands -->`) in the place of the generated part.
"""

import dataclasses
import inspect
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args, get_type_hints

import typer

from lookalike.cli import app
from lookalike.recipe.settings import Recipe
from lookalike.report.page import glossary
from lookalike.search.serve.app import create_app
from lookalike.search.serve.documents import described
from lookalike.search.serve.settings import Settings

INDEX = Path(__file__).parents[1] / "tests" / "written_by_0_2_0" / "index"
SETTING = re.compile(r"^(\w+): (.*)$", re.M)


def commands() -> str:
    """Every verb of the command line with its arguments, options and example."""
    group = typer.main.get_command(app)
    return "\n".join(line for name, verb in _verbs(group) for line in _verb(name, verb))


def _verbs(group: Any, before: str = "lookalike") -> Iterator[tuple[str, Any]]:
    for name, verb in group.commands.items():
        if hasattr(verb, "commands"):
            yield from _verbs(verb, f"{before} {name}")
        elif not verb.hidden:
            yield f"{before} {name}", verb


def _verb(name: str, verb: Any) -> Iterator[str]:
    context = verb.context_class(verb, info_name=name)
    yield from (f"## {name}", "", inspect.cleandoc(verb.help or "").replace("\f", ""), "")
    yield from ("```", " ".join([name, *verb.collect_usage_pieces(context)]), "```", "")
    records = [record for each in verb.params if (record := each.get_help_record(context)) is not None]
    if records:
        yield from ("| option | meaning |", "|---|---|")
        yield from (f"| `{_cell(option)}` | {_cell(meaning)} |" for option, meaning in records)
        yield ""
    if verb.epilog:
        yield from (f"`{verb.epilog.removeprefix('Example: ')}`", "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def recipe_keys() -> str:
    """Every table of a recipe and its keys, with defaults."""
    lines = []
    kinds = [_table_of(hint) for hint in get_type_hints(Recipe).values()]
    for kind in dict.fromkeys(kind for kind in kinds if kind is not None):
        lines += [f"## {(inspect.getdoc(kind) or '').splitlines()[0].rstrip('.')}", ""]
        lines += ["| key | default | meaning |", "|---|---|---|", *_keys(kind), ""]
    return "\n".join(lines)


def _table_of(hint: Any) -> Any:
    kinds = [each for each in (hint, *get_args(hint)) if dataclasses.is_dataclass(each)]
    return kinds[0] if kinds else None


def _keys(kind: Any, prefix: str = "") -> Iterator[str]:
    meanings = dict(SETTING.findall(re.sub(r"\n {2,}", " ", inspect.getdoc(kind) or "")))
    hints = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        inner = _table_of(hints[field.name])
        if inner is not None and "prefix" in field.metadata:
            yield from _keys(inner, field.metadata["prefix"])
            continue
        yield f"| `{prefix}{field.name}` | {_default(field)} | {_cell(meanings.get(field.name, ''))} |"


def _default(field: "dataclasses.Field[Any]") -> str:
    if field.default is dataclasses.MISSING:
        return "" if field.default_factory is dataclasses.MISSING else "none"
    return "none" if field.default in (None, ()) else f"`{_cell(str(field.default))}`"


def http() -> str:
    """Every route of the server, as the server itself describes them."""
    with TemporaryDirectory() as folder:
        shutil.copytree(INDEX, Path(folder) / "shop.index")
        paths = described(create_app(Settings(str(Path(folder) / "shop.index"))).app)["paths"]
    return "\n".join(
        line for path, methods in paths.items() for each in methods.items() for line in _route(path, *each)
    )


def _route(path: str, method: str, route: dict[str, Any]) -> Iterator[str]:
    yield from (f"## {method.upper()} `{path}`", "", route["description"], "")
    for kind, form in route.get("requestBody", {}).get("content", {}).items():
        yield from (f"As `{kind}`:", "", "| field | meaning |", "|---|---|")
        for name, field in form["schema"]["properties"].items():
            yield f"| `{name}` | {_cell(field.get('description', ''))} |"
        yield ""
    yield from (f"Answers: {', '.join(route['responses'])}.", "")


PAGES: dict[str, Callable[[], str]] = {
    "commands": commands,
    "recipe keys": recipe_keys,
    "http": http,
    "glossary": glossary.written,
}


def filled(page: str) -> str:
    """A page with its comments replaced by what they stand for."""
    for name, content in PAGES.items():
        if (mark := f"<!-- {name} -->") in page:
            page = page.replace(mark, content())
    return page
