"""What a run leaves behind in words and numbers: result.json, test.npz, the head of recipe.toml."""

import platform
import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookalike.data import Dataset
from lookalike.errors import UserError
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


def columns(embeddings: Tensor, test: Dataset) -> dict[str, Any]:
    """A dataset as vectors, in the form that `lookalike evaluate` reads."""
    names = np.array(test.label_names)[test.labels.numpy()]
    found: dict[str, Any] = {"paths": np.array([test.images.name(row) for row in range(len(test))])}
    if test.categories is not None:
        found["categories"] = np.array([*test.category_names, ""])[test.categories.numpy()]
    vectors = embeddings.numpy()
    if test.roles is None:
        found |= {"embeddings": vectors, "labels": names}
    else:
        ask = test.roles.numpy() == 0
        found = {name: column[ask] for name, column in found.items()} | {"gallery_paths": found["paths"][~ask]}
        found |= {"embeddings": vectors[ask], "labels": names[ask]}
        found |= {"gallery_embeddings": vectors[~ask], "gallery_labels": names[~ask]}
    return found


def save_embeddings(path: Path, embeddings: Tensor, test: Dataset) -> None:
    """Write them to an .npz file."""
    try:
        with path.open("wb") as file:
            np.savez(file, **columns(embeddings, test))
    except OSError as error:
        raise UserError(f"cannot write {path} ({error.strerror}): make room and go on with --resume") from None


def load_embeddings(path: Path, test: Dataset) -> Tensor:
    """What `save_embeddings` wrote, one row per image of the dataset."""
    try:
        with np.load(path, allow_pickle=False) as found:
            vectors = torch.from_numpy(found["embeddings"])
            gallery = torch.from_numpy(found["gallery_embeddings"]) if test.roles is not None else None
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"cannot read {path} ({error}): delete its folder and go on with --resume") from None
    if gallery is None or test.roles is None:
        return vectors
    joined = torch.empty(len(test), vectors.shape[1])
    joined[test.roles == 0], joined[test.roles != 0] = vectors, gallery
    return joined
