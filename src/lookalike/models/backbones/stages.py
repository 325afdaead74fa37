"""What every backbone has in common: a feature map or tokens out, and names for the stages on the way.

A stage is a name and the beginnings of its parameters' names. Freezing needs the parameters of a stage; mixing in the
middle of the network [math D.3] reads and replaces the output of a stage, through the callback `after`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import unknown
from lookalike.models.preprocess import Preprocessing

Images = Float[Tensor, "n 3 h w"]
After = Callable[[str, Tensor], Tensor]  # (stage, its output) -> the input of the next stage
Steps = Iterable[tuple[str, Callable[[Tensor], Tensor]]]  # stage and what it computes, first stage first
Stages = Mapping[str, tuple[str, ...]]  # stage -> beginnings of the names of its parameters, first stage first


@runtime_checkable
class Backbone(Protocol):
    """Images n × c × h × w in, a feature map n × width × h' × w' or tokens n × t × width out."""

    @property
    def stages(self) -> Stages: ...

    @property
    def width(self) -> int: ...

    @property
    def preprocessing(self) -> Preprocessing: ...

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]: ...

    def __call__(self, images: Tensor, after: After | None = None) -> Tensor: ...


def through(steps: Steps, images: Float[Tensor, "n *map"], after: After | None) -> Float[Tensor, "n *out"]:
    """The images through one stage after another, with `after` applied to the output of each.

    >>> import torch
    >>> steps = [("double", lambda x: 2 * x), ("add", lambda x: x + 1)]
    >>> through(steps, torch.ones(1, 1, 1, 1), None).item()
    3.0
    >>> through(steps, torch.ones(1, 1, 1, 1), lambda stage, x: 10 * x if stage == "double" else x).item()
    21.0
    """
    for name, step in steps:
        images = step(images)
        if after is not None:
            images = after(name, images)
    return images


def stage_of(parameter: str, stages: Stages) -> str:
    """The stage of a parameter (or module), by its name.

    >>> stage_of("bn1.weight", {"stem": ("conv1.", "bn1."), "layer1": ("layer1.",)})
    'stem'
    """
    for name, beginnings in stages.items():
        if parameter.startswith(beginnings):
            return name
    raise KeyError(f"parameter {parameter} is in no stage")


def check_stages(names: Iterable[str], stages: Stages) -> None:
    for name in names:
        if name not in stages:
            raise unknown("stage", name, stages)
