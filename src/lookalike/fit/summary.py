"""What a run leaves behind in words and numbers: result.json, the head of recipe.toml."""

import platform
import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lookalike.models import Model
from lookalike.protocols.class_disjoint import Parts
from lookalike.recipe import Recipe, as_tree


def versions() -> dict[str, str]:
    named = {name: version(name) for name in ("lookalike", "torch", "numpy")}
    return {**named, "python": platform.python_version(), "system": platform.platform(terse=True)}


def header() -> str:
    """The comment at the top of a run's recipe."""
    told = ", ".join(f"{name} {number}" for name, number in versions().items())
    return f"The recipe of this run, every setting written out. Repeat it with: lookalike train recipe.toml\n{told}\n"


def command() -> str:
    """How this program was called."""
    name = Path(sys.argv[0]).name
    return shlex.join(["lookalike" if name == "__main__.py" else name, *sys.argv[1:]])


def content(
    recipe: Recipe, model: Model, divided: Parts, results: list[dict[str, Any]], differences: list[dict[str, Any]]
) -> dict[str, Any]:
    """What result.json holds, besides the training."""
    held = divided.validation
    sizes = {"train": divided.train, "validation": held, "test": divided.test}
    told: dict[str, Any] = {"name": divided.test.name, "source": recipe.data.source}
    for name, part in sizes.items():
        told[f"{name}_classes"] = 0 if part is None else part.present
        told[f"{name}_images"] = 0 if part is None else len(part)
    images, classes = (sum(told[f"{name}_{kind}"] for name in sizes) for kind in ("images", "classes"))
    told["summary"] = f"{images:,} images, {classes:,} classes"
    return {
        "title": f"{divided.test.name}: {recipe.model.architecture.backbone}, {recipe.loss.name}",
        "data": told,
        "model": {
            "backbone": recipe.model.architecture.backbone, "dim": getattr(model.embedder, "dim", None),
            "geometry": model.geometry,
            "parameters": sum(parameter.numel() for parameter in model.embedder.parameters()),
        },
        "protocol": as_tree(recipe.protocol),
        "results": results,
        "differences": differences,
        "versions": versions(),
        "command": command(),
    }  # fmt: skip
