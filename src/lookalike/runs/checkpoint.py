"""The state of a run on disk: tensors in safetensors, everything else in JSON; nothing is pickled.

A checkpoint is a folder of its own, complete before the file `latest` is replaced to name it. Whenever the process
dies, `latest` names a whole checkpoint: the previous one, or the new one. Its file `checksums` (as `sha256sum` writes
and checks it) tells a bit that has changed on the disk since.
"""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from lookalike.errors import UserError, check
from lookalike.files import sha256, whole_folder, write_text

LATEST, TENSORS, PLAIN, CHECKSUMS = "latest", "state.safetensors", "state.json", "checksums"
FORMAT = 3
UNCHECKED = 2  # as 0.2.0 wrote it, without checksums; 0.1.0 wrote no number
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


def check_whole(folder: Path) -> None:
    """Refuse a checkpoint that is damaged, or that another version of this program wrote."""
    if exists(folder):
        _read(folder / latest(folder))


def load(folder: Path) -> dict[str, Any]:
    """The state that `save` wrote, to the last bit; a damaged one is refused."""
    check(exists(folder), f"there is no checkpoint in {folder}")
    return _load(folder / latest(folder))


def save_tensors(place: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors that do not change during a run, as a folder."""
    with whole_folder(place) as folder:
        _write(folder, tensors)


def load_tensors(place: Path) -> Tensors:
    """What `save_tensors` wrote, to the last bit."""
    if place.is_dir():
        return _load(place)
    return _tensors(place.with_suffix(Path(TENSORS).suffix))  # as 0.2.0 wrote them: one file


def _checksums(place: Path) -> str:
    return "".join(f"{sha256(place / name)}  {name}\n" for name in (PLAIN, TENSORS))


def _damaged(place: Path, why: object) -> UserError:
    return UserError(f"the checkpoint {place} is damaged ({why}): {AFRESH}")


def _load(place: Path) -> dict[str, Any]:
    plain = _read(place)
    tensors = _tensors(place / TENSORS)
    try:
        return dict(_joined(plain, tensors))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(place, error) from error


def _tensors(path: Path) -> Tensors:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise _damaged(path, error) from error


def _read(place: Path) -> Any:
    """The plain part of a checkpoint whose files are what was written."""
    sealed = (place / CHECKSUMS).exists()
    try:
        same = not sealed or (place / CHECKSUMS).read_bytes() == _checksums(place).encode()
        content: Any = json.loads((place / PLAIN).read_text(encoding="utf-8")) if same else None
    except (OSError, ValueError) as error:
        raise _damaged(place, error) from error
    if not same:
        raise _damaged(place, f"its content does not match its {CHECKSUMS}")
    kinds = content.keys() if isinstance(content, dict) else set()
    if kinds not in ({"format", "state"}, {"mapping"}):
        raise _damaged(place, f"{PLAIN} holds no state")
    check(
        content.get("format") in (FORMAT, UNCHECKED),
        f"the checkpoint {place} is of another version of lookalike, and only that version can resume it: {AFRESH}",
    )
    if not sealed and content["format"] != UNCHECKED:
        raise _damaged(place, f"its {CHECKSUMS} are gone")
    return content["state"]


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
    (folder / CHECKSUMS).write_text(_checksums(folder), encoding="utf-8")


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
