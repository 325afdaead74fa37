"""Backbone, pooling and a linear head: images in, raw embeddings out.

Embeddings are not normalised here: losses apply their own geometry, and a saved model remembers the one to search with.
Batch normalisation [math G]: "train" learns everything; "frozen_statistics" keeps the running statistics and learns
scale and shift ([math G.1], [math G.3]); "frozen" keeps both ([math G.2]).
"""

from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from lookalike.errors import check, unknown
from lookalike.models import low_rank
from lookalike.models.backbones.stages import After, Backbone, check_stages, stage_of
from lookalike.models.pooling import POOLINGS
from lookalike.models.readout import CentredFeatures, Readout, side_by_side

BatchNorm = Literal["train", "frozen_statistics", "frozen"]
Init = Literal["default", "glorot"]


class Embedder(nn.Module):
    """f(x) = W pool(backbone(x)) + b, of `dim` numbers; with `dim=None` the pooled features themselves.

    `backbone`: the network before the pooling. `pooling` ("avg", "avg_max", "gem", "cls", "cls_avg"), `bias` and `init`
    of the head ("default", "glorot"), `batch_norm` ("train", "frozen_statistics", "frozen") and `readout` (what an
    embedding is made of) are those of `Architecture`.
    `layer_norm` standardises the pooled features, without parameters (Teh et al., "ProxyNCA++", ECCV 2020, sec. 3.5).
    With `hidden` neurons between them, the head has two linear layers.

    >>> import torch
    >>> from lookalike.models.backbones.conv4 import Conv4
    >>> Embedder(Conv4(channels=1), dim=32)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 32])
    """

    def __init__(
        self,
        backbone: Backbone,
        dim: int | None = 128,
        pooling: str = "avg",
        bias: bool = True,
        layer_norm: bool = False,
        init: Init = "default",
        batch_norm: BatchNorm = "train",
        readout: Readout | None = None,
        hidden: int | None = None,
    ) -> None:
        super().__init__()
        for kind, name, possible in (
            ("pooling", pooling, tuple(POOLINGS)),
            ("initialisation", init, get_args(Init)),
            ("batch normalisation", batch_norm, get_args(BatchNorm)),
        ):
            if name not in possible:
                raise unknown(kind, name, possible)
        check(dim is None or dim > 0, f"an embedding needs at least one dimension, not {dim}")
        check(hidden is None or hidden > 0, f"a hidden layer has at least one neuron, not {hidden}")
        check(hidden is None or dim is not None, "a head with a hidden layer ends in an embedding: set dim")
        self.backbone = backbone
        self.set_pooling(pooling)
        self.head = _head(self.width, dim, bias, layer_norm, init, hidden)
        self.set_readout(readout or Readout(), dim)
        self.batch_norm = batch_norm
        self.frozen: tuple[str, ...] = ()
        self.freeze(())

    def forward(self, images: Float[Tensor, "n c h w"], after: After | None = None) -> Float[Tensor, "n dim"]:
        """The raw embeddings of `images`."""
        return self.read(self.features(images, after))

    def read(self, features: Float[Tensor, "n width"]) -> Float[Tensor, "n dim"]:
        """The embeddings of pooled `features`, as `readout` says."""
        if self.centred is None:
            return self.head(features)  # type: ignore[no-any-return]
        if self.readout.kind == "features":
            return self.centred(features)  # type: ignore[no-any-return]
        return side_by_side(self.head(features), self.centred(features), self.readout.head_weight)

    def features(self, images: Float[Tensor, "n c h w"], after: After | None = None) -> Float[Tensor, "n width"]:
        """The pooled features, the input of `head`: computed once, they train a head in minutes."""
        # Convolutions on a CPU are faster in this layout (benchmarks/backbones.py); values differ by rounding only.
        images = images.contiguous(memory_format=torch.channels_last)
        return self.pool(self.backbone(images, after))

    def pool(self, maps: Float[Tensor, "n *map"]) -> Float[Tensor, "n width"]:
        """The features in the `maps`, or tokens, of the backbone."""
        pooled: Tensor = self.pooling(maps, getattr(self.backbone, "prefix_tokens", 0))
        return pooled

    def set_pooling(self, name: str) -> None:
        """From now on features are pooled in the way of this `name`; the head is left as it is."""
        self.pooling = POOLINGS[name]()
        self.width = self.backbone.width * getattr(self.pooling, "vectors", 1)

    def set_readout(self, readout: Readout, head_dim: int | None) -> None:
        """From now on embeddings are what `readout` says: the head (`head_dim` numbers), centred features, or both."""
        self.readout = readout
        self.dim = readout.dim(head_dim, self.width)
        self.centred = None if readout.kind == "head" else CentredFeatures(self.width, readout.components)

    def freeze(self, stages: Iterable[str]) -> None:
        """From now on exactly these `stages` are frozen: no gradients, no running statistics, no dropout."""
        stages = tuple(stages)
        check_stages(stages, self.backbone.stages)
        self.frozen = stages
        fixed = set(_normalisation_parameters(self.backbone)) if self.batch_norm == "frozen" else set()
        only = {f"{name}.{part}" for name, module in _modules(self.backbone) for part in low_rank.parts(module)}
        for name, parameter in self.backbone.named_parameters():
            learns = name not in fixed and (not only or name in only)
            parameter.requires_grad_(learns and stage_of(name, self.backbone.stages) not in stages)
        self.train(self.training)

    def adapt(self, rank: int, seed: int = 0) -> None:
        """From now on the backbone learns by matrices of this `rank` beside its linear layers, not in frozen stages.

        `seed`: decides how they begin.
        """
        stages, frozen = self.backbone.stages, self.frozen
        assert isinstance(self.backbone, nn.Module)
        low_rank.adapt(self.backbone, lambda name: stage_of(f"{name}.", stages) not in frozen, rank, seed)
        self.freeze(frozen)

    def merge(self) -> None:
        """Plain layers again, with what those matrices have learnt in their weights."""
        assert isinstance(self.backbone, nn.Module)
        low_rank.merge(self.backbone)
        self.freeze(self.frozen)

    def train(self, mode: bool = True) -> "Embedder":
        """Training mode (or evaluation: `mode=False`), except for what is frozen."""
        super().train(mode)
        frozen = tuple(start for stage in self.frozen for start in self.backbone.stages[stage])
        for name, module in _modules(self.backbone):
            normalises = isinstance(module, _BatchNorm) and self.batch_norm != "train"
            if normalises or f"{name}.".startswith(frozen):
                module.training = False
        return self

    def parameter_groups(
        self,
        base_lr: float,
        head_lr: float | None = None,
        weight_decay: float = 0.0,
        stage_decay: float | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Groups for an optimiser with `weight_decay`: the backbone at `base_lr`, head and pooling at `head_lr`.

        `stage_decay`: the rate of a stage is this share of that of the next; only the last learns at `base_lr`.
        """
        body: dict[str, list[nn.Parameter]] = {"backbone": []} if stage_decay is None else {}
        for name, parameter in self.backbone.named_parameters():
            group = "backbone" if stage_decay is None else stage_of(name, self.backbone.stages)
            body.setdefault(group, []).append(parameter)
        order = list(self.backbone.stages)
        for name, parameters in body.items():
            later = 0 if stage_decay is None else len(order) - 1 - order.index(name)
            rate = base_lr * (stage_decay or 1.0) ** later
            yield {"name": "backbone", "params": parameters, "lr": rate, "weight_decay": weight_decay}
        head = [*self.pooling.parameters(), *self.head.parameters()]
        if head:
            yield {
                "name": "head",
                "params": head,
                "lr": base_lr if head_lr is None else head_lr,
                "weight_decay": weight_decay,
            }


def _head(
    width: int, dim: int | None, bias: bool, layer_norm: bool, init: Init, hidden: int | None = None
) -> nn.Sequential:
    head = nn.Sequential()
    if layer_norm:
        head.add_module("norm", nn.LayerNorm(width, elementwise_affine=False))
    if hidden is not None:
        head.add_module("hidden", _linear(width, hidden, True, init))
        head.add_module("relu", nn.ReLU())
    if dim is not None:
        head.add_module("linear", _linear(hidden or width, dim, bias, init))
    return head


def _linear(width: int, dim: int, bias: bool, init: Init) -> nn.Linear:
    layer = nn.Linear(width, dim, bias=bias)
    if init == "glorot":
        nn.init.xavier_uniform_(layer.weight)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
    return layer


def _modules(backbone: Backbone) -> list[tuple[str, nn.Module]]:
    return list(backbone.named_modules()) if isinstance(backbone, nn.Module) else []


def _normalisation_parameters(backbone: Backbone) -> Iterator[str]:
    for name, module in _modules(backbone):
        if isinstance(module, _BatchNorm):
            yield from (f"{name}.{parameter}" for parameter, _ in module.named_parameters())
