"""The state of a run on disk: tensors in safetensors, everything else in JSON; nothing is pickled.

A checkpoint is a folder of its own, complete before the file `latest` is replaced to name it. Whenever the process
dies, `latest` names a whole checkpoint: the one before, or the new one.
"""

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from lookalike.errors import UserError, check

LATEST, TENSORS, PLAIN = "latest", "state.safetensors", "state.json"
NAME = re.compile(r"step-\d+(-again)?")
AFRESH = "start again with a new --out"
Tensors = dict[str, Tensor]


def save(folder: Path, step: int, state: Mapping[str, Any]) -> None:
    """Write a checkpoint and let `latest` name it; on any failure the one before stays."""
    name = _name(folder, step)
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


def _name(folder: Path, step: int) -> str:
    """Never the name of the newest checkpoint: that one stays whole until this one is."""
    name = f"step-{step:08d}"
    return f"{name}-again" if exists(folder) and latest(folder) == name else name


def exists(folder: Path) -> bool:
    return (folder / LATEST).is_file()


def latest(folder: Path) -> str:
    """The name of the newest checkpoint."""
    name = (folder / LATEST).read_text(encoding="utf-8", errors="replace")
    check(NAME.fullmatch(name) is not None, f"the checkpoint {folder} is damaged ({LATEST} says {name!r}): {AFRESH}")
    return name


def step(folder: Path) -> int:
    """The step of the newest checkpoint; −1 where there is none."""
    return int(latest(folder).split("-")[1]) if exists(folder) else -1


def load(folder: Path) -> dict[str, Any]:
    """The state that `save` was given."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    check(exists(folder), f"there is no checkpoint in {folder}")
    place = folder / latest(folder)
    try:
        tensors = load_file(place / TENSORS)
        plain = json.loads((place / PLAIN).read_text(encoding="utf-8"))
        state: dict[str, Any] = dict(_joined(plain, tensors))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
        raise UserError(f"the checkpoint {place} is damaged ({error}): {AFRESH}") from error
    return state


def keep(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors that do not change during a run; whole or not at all."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_tensors(partial, tensors)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UserError(f"cannot save {path} ({error.strerror or error}): make room") from None


def kept(path: Path) -> Tensors:
    """What `keep` wrote."""
    from safetensors.torch import load_file

    return load_file(path)


def _write(folder: Path, state: Mapping[str, Any]) -> None:
    tensors: Tensors = {}
    plain = _split(dict(state), "", tensors)
    _write_tensors(folder / TENSORS, tensors)
    _write_text(folder / PLAIN, json.dumps(plain))


def _write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, path)
    except SafetensorError as error:
        raise OSError(str(error)) from error
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _split(value: Any, path: str, tensors: Tensors) -> Any:
    """The value as JSON can hold it, its tensors taken out into `tensors` under their paths."""
    if isinstance(value, Tensor):
        name = f"{len(tensors)}{path}"  # the path is for readers; two of them may read the same
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {"tensor": name}
    if isinstance(value, Mapping):
        return {"mapping": [[key, _split(part, f"{path}/{key}", tensors)] for key, part in value.items()]}
    if isinstance(value, list | tuple):
        parts = [_split(part, f"{path}/{place}", tensors) for place, part in enumerate(value)]
        return {"tuple" if isinstance(value, tuple) else "list": parts}
    return {"value": value}


def _joined(plain: Any, tensors: Tensors) -> Any:
    ((kind, content),) = plain.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "mapping":
        return {key: _joined(part, tensors) for key, part in content}
    if kind in ("list", "tuple"):
        parts = [_joined(part, tensors) for part in content]
        return tuple(parts) if kind == "tuple" else parts
    return content
