"""A network as plain data: enough to build it again, without its weights."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from lookalike.catalog import FACT
from lookalike.errors import check
from lookalike.models import backbones
from lookalike.models.embedder import BatchNorm, Embedder, Init
from lookalike.models.readout import Readout


@dataclass(frozen=True)
class Architecture:
    """A backbone by name with its settings, and the embedder around it.

    backbone: its name, one of `models.names()`, `timm:NAME` or `hf:NAME`.
    settings: its own settings.
    dim: the dimensions of an embedding; None: the features themselves.
    pooling: "avg", "avg_max", "gem", or, for transformers, "cls" or "cls_avg".
    bias: whether the head has one.
    layer_norm: whether the pooled features are standardised before the head.
    init: how the head begins: "default" or "glorot".
    batch_norm: "train", "frozen_statistics" or "frozen".
    hidden: neurons of a hidden layer in the head; None: the head is linear.
    readout: what an embedding is made of; its statistics come from the train images.

    >>> Architecture("conv4", {"channels": 1}, dim=32).build().dim
    32
    """

    backbone: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    dim: int | None = 128
    pooling: str = "avg"
    bias: bool = True
    layer_norm: bool = False
    init: Init = "default"
    batch_norm: BatchNorm = "train"
    hidden: int | None = None
    readout: Readout = field(default_factory=Readout, metadata=FACT)

    def __post_init__(self) -> None:
        check(
            "weights" not in self.settings, "weights are not part of an architecture: give them to build(weights=...)"
        )

    def build(self, weights: str | Path | None = None, seed: int = 0) -> Embedder:
        """The embedder, its random parts from `seed`; `weights`: "pretrained", or a file of published weights."""
        source = {} if weights is None else {"weights": weights}
        backbone = backbones.build(self.backbone, seed, **self.settings, **source)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            return Embedder(
                backbone,
                self.dim,
                self.pooling,
                self.bias,
                self.layer_norm,
                self.init,
                self.batch_norm,
                self.readout,
                self.hidden,
            )

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and TOML."""
        return {**asdict(self), "settings": dict(self.settings)}
