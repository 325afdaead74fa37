"""The state of a run on disk: tensors in safetensors, everything else in JSON; nothing is pickled.

A checkpoint is a folder of its own, complete before the file `latest` is replaced to name it. Whenever the process
dies, `latest` names a whole checkpoint: the previous one, or the new one.
"""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from lookalike.errors import UserError, check
from lookalike.files import whole_file, whole_folder, write_text

LATEST, TENSORS, PLAIN = "latest", "state.safetensors", "state.json"
FORMAT = 2  # 0.1.0 wrote none
NAME = re.compile(r"step-\d+(-again)?")
AFRESH = "start again with --fresh or a new --out"
Tensors = dict[str, Tensor]


def save(folder: Path, step: int, state: Mapping[str, Any]) -> None:
    """Write a checkpoint and let `latest` name it; on any failure a whole one stays."""
    name = _name(folder, step)
    try:
        with whole_folder(folder / name) as place:
            _write(place, state)
        write_text(folder / LATEST, name)
    except UserError as error:
        kept = f"; the last whole checkpoint is {latest(folder)}" if exists(folder) else ""
        raise UserError(f"cannot save the checkpoint: {error}{kept}") from error
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


def check_format(folder: Path) -> None:
    """Refuse a checkpoint that another version of this program wrote."""
    if exists(folder):
        _read(folder / latest(folder))


def load(folder: Path) -> dict[str, Any]:
    """The state that `save` wrote."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    check(exists(folder), f"there is no checkpoint in {folder}")
    place = folder / latest(folder)
    plain = _read(place)
    try:
        state: dict[str, Any] = dict(_joined(plain, load_file(place / TENSORS)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
        raise UserError(f"the checkpoint {place} is damaged ({error}): {AFRESH}") from error
    return state


def _read(place: Path) -> Any:
    """The plain part of a checkpoint."""
    try:
        content = json.loads((place / PLAIN).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"the checkpoint {place} is damaged ({error}): {AFRESH}") from error
    known = isinstance(content, dict) and content.keys() == {"format", "state"}
    old = isinstance(content, dict) and content.keys() == {"mapping"}  # as 0.1.0 wrote it
    check(known or old, f"the checkpoint {place} is damaged ({PLAIN} holds no state): {AFRESH}")
    check(
        known and content["format"] == FORMAT,
        f"the checkpoint {place} was written by another version of lookalike, which alone can resume it: {AFRESH}",
    )
    return content["state"]


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors that do not change during a run."""
    from safetensors.torch import save

    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(save({name: value.detach().cpu().contiguous() for name, value in tensors.items()}))


def load_tensors(path: Path) -> Tensors:
    """What `save_tensors` wrote."""
    from safetensors.torch import load_file

    return load_file(path)


def _write(folder: Path, state: Mapping[str, Any]) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    tensors: Tensors = {}
    plain = _split(dict(state), "", tensors)
    try:
        save_file(tensors, folder / TENSORS)
    except SafetensorError as error:
        raise OSError(str(error)) from error
    (folder / PLAIN).write_text(json.dumps({"format": FORMAT, "state": plain}), encoding="utf-8")


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
