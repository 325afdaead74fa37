"""The content of result.json, and the comment at the top of a run's recipe."""

import platform
import shlex
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lookalike.models import Model
from lookalike.protocols.class_disjoint import Parts
from lookalike.recipe import Recipe, as_tree


@cache  # each is read from the metadata of a package
def versions() -> dict[str, str]:
    named = {name: version(name) for name in ("lookalike", "torch", "numpy")}
    return {**named, "python": platform.python_version(), "system": platform.platform(terse=True)}


def header() -> str:
    """The comment at the top of a run's recipe."""
    numbers = ", ".join(f"{name} {number}" for name, number in versions().items())
    return (
        f"The recipe of this run, every setting written out. Repeat it with: lookalike train recipe.toml\n{numbers}\n"
    )


def command() -> str:
    """The command line of this process."""
    name = Path(sys.argv[0]).name
    return shlex.join(["lookalike" if name == "__main__.py" else name, *sys.argv[1:]])


def content(
    recipe: Recipe, model: Model, parts: Parts, results: list[dict[str, Any]], differences: list[dict[str, Any]]
) -> dict[str, Any]:
    """The content of result.json, besides the training."""
    name = recipe.model.architecture.backbone
    backbone = name if model.architecture is None else model.architecture.backbone
    return {
        "title": f"{parts.test.name}: {name}, {recipe.loss.name}",
        "data": _sizes(recipe, parts),
        "model": {
            "backbone": backbone,
            "dim": getattr(model.embedder, "dim", None),
            "geometry": model.geometry,
            "parameters": sum(parameter.numel() for parameter in model.embedder.parameters()),
        },
        "protocol": as_tree(recipe.protocol),
        "results": results,
        "differences": differences,
        "versions": versions(),
    }


def _sizes(recipe: Recipe, parts: Parts) -> dict[str, Any]:
    named = {"train": parts.train, "validation": parts.validation, "test": parts.test}
    sizes: dict[str, Any] = {"name": parts.test.name, "source": recipe.data.source}
    for name, part in named.items():
        sizes[f"{name}_classes"] = 0 if part is None else part.present
        sizes[f"{name}_images"] = 0 if part is None else len(part)
    images, classes = (sum(sizes[f"{name}_{kind}"] for name in named) for kind in ("images", "classes"))
    return sizes | {"summary": f"{images:,} images, {classes:,} classes"}
