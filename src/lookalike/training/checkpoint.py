"""The state of a run on disk: tensors in safetensors, everything else in JSON; nothing is pickled.

A checkpoint is a folder of its own, complete before the file `latest` is replaced to name it. Whenever the process
dies, `latest` names a whole checkpoint: the one before, or the new one.
"""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from lookalike.errors import UserError, check

LATEST, TENSORS, PLAIN = "latest", "state.safetensors", "state.json"
Tensors = dict[str, Tensor]


def save(folder: Path, step: int, state: Mapping[str, Any]) -> None:
    """Write a checkpoint and let `latest` name it; on any failure the one before stays."""
    name = f"step-{step:08d}"
    place, partial = folder / name, folder / f"{name}.partial"
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _write(partial, state)
        shutil.rmtree(place, ignore_errors=True)
        partial.rename(place)
        pointer = folder / f"{LATEST}.partial"
        _write_text(pointer, name)
        pointer.replace(folder / LATEST)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        kept = f"; the checkpoint before it is kept: {latest(folder)}" if exists(folder) else ""
        raise UserError(
            f"cannot save the checkpoint to {folder} ({error.strerror or error}): make room{kept}"
        ) from None
    for old in folder.glob("step-*"):
        if old.name != name:
            shutil.rmtree(old, ignore_errors=True)


def exists(folder: Path) -> bool:
    return (folder / LATEST).is_file()


def latest(folder: Path) -> str:
    return (folder / LATEST).read_text(encoding="utf-8")


def step(folder: Path) -> int:
    """The step of the newest checkpoint; 0 where there is none."""
    return int(latest(folder).removeprefix("step-")) if exists(folder) else 0


def load(folder: Path) -> dict[str, Any]:
    """The state that `save` was given."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    check(exists(folder), f"there is no checkpoint in {folder}")
    place = folder / latest(folder)
    try:
        tensors = load_file(place / TENSORS)
        plain = json.loads((place / PLAIN).read_text(encoding="utf-8"))
        state = _joined(plain, tensors)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise UserError(f"the checkpoint {place} is damaged ({error}): start again with a new --out") from error
    assert isinstance(state, dict)
    return state


def _write(folder: Path, state: Mapping[str, Any]) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    tensors: Tensors = {}
    plain = _split(dict(state), "", tensors)
    try:
        save_file(tensors, folder / TENSORS)
    except SafetensorError as error:
        raise OSError(str(error)) from error
    with (folder / TENSORS).open("rb") as file:
        os.fsync(file.fileno())
    _write_text(folder / PLAIN, json.dumps(plain))


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _split(value: Any, path: str, tensors: Tensors) -> Any:
    """The value as JSON can hold it, its tensors taken out into `tensors` under their paths."""
    if isinstance(value, Tensor):
        tensors[path] = value.detach().cpu().contiguous().clone()
        return {"tensor": path}
    if isinstance(value, Mapping):
        return {"mapping": [[key, _split(part, f"{path}/{key}", tensors)] for key, part in value.items()]}
    if isinstance(value, list | tuple):
        parts = [_split(part, f"{path}/{place}", tensors) for place, part in enumerate(value)]
        return {"tuple" if isinstance(value, tuple) else "list": parts}
    return {"value": value}


def _joined(plain: Mapping[str, Any], tensors: Tensors) -> Any:
    ((kind, content),) = plain.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "mapping":
        return {key: _joined(part, tensors) for key, part in content}
    if kind in ("list", "tuple"):
        parts = [_joined(part, tensors) for part in content]
        return tuple(parts) if kind == "tuple" else parts
    return content
