"""A model on disk: model.json (what it is), weights.safetensors, recipe.toml (how it was trained), README.md (a card).

Nothing in the folder is code, and loading runs none.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import nn

from lookalike.errors import UserError, check
from lookalike.files import read_regular, whole_folder
from lookalike.geometry import Geometry
from lookalike.models.architecture import Architecture
from lookalike.models.backbones import weights
from lookalike.models.low_rank import merged_state
from lookalike.models.model_card import model_card
from lookalike.models.preprocess import Preprocessing
from lookalike.values import dataclass_of

FORMAT = 1
DESCRIPTION, RECIPE, CARD = "model.json", "recipe.toml", "README.md"
FILES = (DESCRIPTION, weights.WEIGHTS, RECIPE, CARD)
LARGEST = 1 << 26  # bytes of a file of text


@dataclass(frozen=True)
class Description:
    """The content of model.json."""

    architecture: Architecture | None  # None: a network of the user's own
    preprocessing: Preprocessing
    geometry: Geometry
    dim: int | None
    classes: tuple[str, ...]
    metrics: Mapping[str, float]
    fingerprint: str | None = None  # version 0.1.0 did not write it
    format: int = FORMAT

    def as_dict(self) -> dict[str, Any]:
        values = asdict(self)
        parts = {"preprocessing": self.preprocessing.as_dict(), "architecture": None}
        if self.architecture is not None:
            parts["architecture"] = self.architecture.as_dict()
        return {"format": values.pop("format"), **values, **parts}


def write(folder: Path, description: Description, embedder: nn.Module, recipe: str | None) -> None:
    """Write all files whole or not at all: a reader sees the old model or the new one."""
    ours = not folder.exists() or (folder / DESCRIPTION).is_file() or (folder.is_dir() and not any(folder.iterdir()))
    check(ours, f"{folder} is not a model folder: choose an empty or a new one")
    with whole_folder(folder) as partial:
        _write_files(partial, description, embedder, recipe)


def _write_files(folder: Path, description: Description, embedder: nn.Module, recipe: str | None) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    state = {key: value.detach().cpu().contiguous().clone() for key, value in merged_state(embedder).items()}
    try:
        save_file(state, folder / weights.WEIGHTS)
    except SafetensorError as error:
        raise OSError(f"writing {weights.WEIGHTS} failed ({error})") from error
    values = description.as_dict()
    text = json.dumps(values, indent=2, ensure_ascii=False)
    (folder / DESCRIPTION).write_text(text + "\n", encoding="utf-8")
    parameters = sum(value.numel() for key, value in state.items() if key in dict(embedder.named_parameters()))
    (folder / CARD).write_text(model_card(values, parameters), encoding="utf-8")
    if recipe is not None:
        (folder / RECIPE).write_text(recipe, encoding="utf-8")


def read(folder: Path) -> tuple[Description, str | None]:
    """The content of model.json, checked, and the recipe if there is one."""
    path = folder / DESCRIPTION
    left = next(folder.parent.glob(f".{folder.name}.*.old"), None) if not folder.exists() else None
    hint = "" if left is None else f"; a save was interrupted, and the model before it is {left}"
    if (folder / "model" / DESCRIPTION).is_file():  # the folder of a run
        hint = f"; did you mean {folder / 'model'}?"
    check(path.is_file(), f"no model in {folder}: there is no {DESCRIPTION}{hint}")
    try:
        values = json.loads(_text(path), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    version = values.get("format") if isinstance(values, dict) else FORMAT
    check(version == FORMAT, f"{path} has format {version}, this version reads {FORMAT}: update lookalike")
    recipe = folder / RECIPE
    return dataclass_of(Description, values, str(path)), _text(recipe) if recipe.exists() else None


def _text(path: Path) -> str:
    try:
        return read_regular(path, LARGEST).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def fill(folder: Path, embedder: nn.Module) -> None:
    """The weights of a folder into a network."""
    path = folder / weights.WEIGHTS
    check(path.is_file(), f"the model in {folder} has no {weights.WEIGHTS}")
    weights.fill(embedder, weights.read(path), str(path))
