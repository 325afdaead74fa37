"""A model on disk: model.json (what it is), weights.safetensors, recipe.toml (how it was trained), README.md (a card).

Nothing in the folder is code, and loading runs none.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from lookalike.errors import UserError, check
from lookalike.files import whole_folder
from lookalike.models.backbones import weights
from lookalike.models.model_card import model_card

FORMAT = 1
DESCRIPTION, RECIPE, CARD = "model.json", "recipe.toml", "README.md"
PARTS = ("architecture", "preprocessing", "geometry", "dim", "classes", "metrics")


def write(folder: Path, description: Mapping[str, Any], embedder: nn.Module, recipe: str | None) -> None:
    """Write all files whole or not at all: a reader sees the old model or the new one."""
    ours = not folder.exists() or (folder / DESCRIPTION).is_file() or (folder.is_dir() and not any(folder.iterdir()))
    check(ours, f"{folder} is not a model folder: choose an empty or a new one")
    with whole_folder(folder) as partial:
        _write_files(partial, description, embedder, recipe)


def _write_files(folder: Path, description: Mapping[str, Any], embedder: nn.Module, recipe: str | None) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    state = {key: value.detach().cpu().contiguous().clone() for key, value in embedder.state_dict().items()}
    try:
        save_file(state, folder / weights.WEIGHTS)
    except SafetensorError as error:
        raise OSError(f"writing {weights.WEIGHTS} failed ({error})") from error
    text = json.dumps({"format": FORMAT, **description}, indent=2, ensure_ascii=False)
    (folder / DESCRIPTION).write_text(text + "\n", encoding="utf-8")
    parameters = sum(parameter.numel() for parameter in embedder.parameters())
    (folder / CARD).write_text(model_card(description, parameters), encoding="utf-8")
    if recipe is not None:
        (folder / RECIPE).write_text(recipe, encoding="utf-8")


def read(folder: Path) -> tuple[dict[str, Any], str | None]:
    """The content of model.json, checked, and the recipe if there is one."""
    path = folder / DESCRIPTION
    left = next(folder.parent.glob(f".{folder.name}.*.old"), None) if not folder.exists() else None
    hint = "" if left is None else f"; a save was interrupted, and the model before it is {left}"
    if (folder / "model" / DESCRIPTION).is_file():  # the folder of a run
        hint = f"; did you mean {folder / 'model'}?"
    check(path.is_file(), f"no model in {folder}: there is no {DESCRIPTION}{hint}")
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    missing = [part for part in PARTS if not isinstance(description, dict) or part not in description]
    check(not missing, f"{path} is incomplete: it lacks {', '.join(missing)}")
    version = description.get("format")
    check(version == FORMAT, f"{path} has format {version}, this version reads {FORMAT}: update lookalike")
    recipe = folder / RECIPE
    return description, recipe.read_text(encoding="utf-8") if recipe.is_file() else None


def fill(folder: Path, embedder: nn.Module) -> None:
    path = folder / weights.WEIGHTS
    check(path.is_file(), f"the model in {folder} has no {weights.WEIGHTS}")
    weights.fill(embedder, weights.read(path), str(path))
