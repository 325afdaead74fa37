"""Stages of a network written elsewhere: detected in its modules, observed with hooks.

Almost every network is a list of blocks with something before and after it. The entries of that list are the stages,
under their names in the network; parameters outside all modules (class token, positions) belong to the first.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from lookalike.models.backbones.stages import After, Stages

# The list with this share of the parameters is the stages: alone, or beside other lists (ConvNeXt has a stem list).
NOTABLE, DOMINANT = 0.25, 0.9


def detect_stages(network: nn.Module, prefix: str = "") -> Stages:
    """The stages of a network, first to last; `prefix` comes before the names of its parameters.

    >>> blocks = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    >>> list(detect_stages(nn.ModuleDict({"stem": nn.Linear(3, 2), "blocks": blocks, "norm": nn.LayerNorm(2)})))
    ['stem', 'blocks.0', 'blocks.1', 'norm']
    """
    names = list(_expanded(network, ""))
    stages: dict[str, tuple[str, ...]] = {name: (f"{name}.",) for name in names}
    known = tuple(f"{name}." for name in names)
    loose = tuple(name for name, _ in network.named_parameters() if not name.startswith(known))
    if loose:
        stages[names[0]] += loose
    return {name: tuple(f"{prefix}{start}" for start in starts) for name, starts in stages.items()}


def _expanded(module: nn.Module, prefix: str) -> Iterator[str]:
    children = {name: child for name, child in module.named_children() if _size(child)}
    blocks = _list_of_blocks(children)
    outer = blocks or _around_the_list(children)
    for name, child in children.items():
        if name == blocks:
            yield from (f"{prefix}{name}.{entry}" for entry, block in child.named_children() if _size(block))
        elif name == outer:
            yield from _expanded(child, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _list_of_blocks(children: dict[str, nn.Module]) -> str | None:
    """The child that is the list; None without one, or where several lists side by side are the stages (ResNet)."""
    lists = [name for name, child in children.items() if _is_list(child)]
    beside = children if len(lists) == 1 else lists
    needed = (NOTABLE if len(lists) == 1 else DOMINANT) * sum(_size(children[name]) for name in beside)
    return next((name for name in lists if _size(children[name]) > needed), None)


def _around_the_list(children: dict[str, nn.Module]) -> str | None:
    """The largest child with a list inside it, if no child is a list itself."""
    if any(_is_list(child) for child in children.values()):
        return None
    around = [name for name, child in children.items() if any(_is_list(inner) for inner in child.modules())]
    return max(around, key=lambda name: _size(children[name]), default=None)


def _is_list(module: nn.Module) -> bool:
    return isinstance(module, nn.ModuleList | nn.Sequential) and sum(map(bool, map(_size, module.children()))) > 1


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@contextmanager
def watched(network: nn.Module, stages: Stages, after: After | None) -> Iterator[None]:
    """Within the block, the output of every stage goes through `after`."""
    with ExitStack() as hooks:
        if after is not None:
            for name in stages:
                hooks.callback(network.get_submodule(name).register_forward_hook(_hook(name, after)).remove)
        yield


def _hook(stage: str, after: After) -> Any:
    def hook(_module: nn.Module, _inputs: Any, output: Any) -> Any:
        if isinstance(output, Tensor):
            return after(stage, output)
        return (after(stage, output[0]), *output[1:])  # transformers: hidden states first

    return hook
