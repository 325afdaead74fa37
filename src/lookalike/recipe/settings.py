"""A recipe as frozen dataclasses: one per table of the file, every key with its default.

Where the code works with a dataclass (an architecture, a schedule, a plan), the table is that dataclass or holds it
`inlined`. Fields marked as a `FACT`, such as the number of steps a schedule spans, are not keys of a recipe: data,
model or the run decide them. A table with a field `settings` passes its other keys on to the member it names, which
checks them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lookalike.errors import check
from lookalike.geometry import Geometry
from lookalike.models import Architecture, Unfreezing
from lookalike.models.backends import BackendName
from lookalike.training import Clipping, Plan, Schedule
from lookalike.training.ccp import Chance
from lookalike.training.loop import Precision
from lookalike.training.mixup import Mixup

Settings = Mapping[str, Any]


def inlined(prefix: str = "") -> Settings:
    """Marks a field whose own keys stand in the table that holds it, each name after `prefix`."""
    return {"prefix": prefix}


@dataclass(frozen=True)
class Member:
    """[loss], [miner], [sampler]: a member of a catalogue by name; `preset` names settings of a paper."""

    name: str
    preset: str | None = None
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class Data:
    """[data]: where the images are, and how classes are split; splits of the dataset itself come before `test`."""

    source: str = ""  # whatever data.load takes; the command line may give it instead
    name: str | None = None  # the dataset this recipe is for; None: any
    test: float = 0.5  # share of the classes, where the dataset has no splits
    validation: float = 0.1  # share of the train classes; 0: none
    workers: int = 0  # processes that load images


@dataclass(frozen=True)
class ProtocolSettings:
    """[protocol]: who trains, who queries, how many runs, and what chooses the weights (docs/recipes.md)."""

    name: str = "class_disjoint"  # or cross_validation, query_gallery, vehicle_id
    select: str = "validation"  # "test_max": every test metric's maximum over training, which is optimistic
    seeds: int = 1  # runs, from `seed` on
    folds: int = 4  # cross_validation: ranges of the train classes
    models: int | None = None  # cross_validation: how many of the folds are trained; None: all
    fold: int | None = None  # cross_validation: only this one, counted from 1
    gallery: str = "all"  # vehicle_id: all other images; "one_per_class": the classic draw
    repeats: int = 10  # vehicle_id, one_per_class: number of draws


@dataclass(frozen=True)
class Images:
    """[images]: what the network sees. Unless given, `size` and `short_side` are those of the preset."""

    preset: str = "roth"
    size: int | None = None
    short_side: int | None = None
    area: tuple[float, ...] | None = None
    flip: float | None = None


@dataclass(frozen=True)
class Network:
    """[model]: backbone and embedder; `head` is how the linear layer starts: default, principal, or saved."""

    architecture: Architecture = field(default=Architecture("conv4"), metadata=inlined())
    weights: str | None = None  # "pretrained", a file, or the folder of a saved model; None: random
    head: str = "default"
    freeze: str | None = None  # this stage and all before it do not learn
    unfreezing: Unfreezing = field(default=Unfreezing(), metadata=inlined("unfreeze_"))


@dataclass(frozen=True)
class HeadOnly:
    """[head]: steps that train the head alone, on features of the frozen backbone, before everything learns."""

    steps: int = 0
    lr: float = 1e-3
    batch_size: int = 128
    per_class: int = 4


@dataclass(frozen=True)
class FrozenFeatures:
    """[features]: the backbone is frozen and the head trains on its features, which are computed once and cached."""

    views: int = 0  # random crops of every train image, beside its centre
    backend: BackendName = "auto"  # what computes the features: torch, onnx, or onnx where it gives the same


@dataclass(frozen=True)
class Memory:
    """[memory]: the cross-batch memory, in batches; 0: none."""

    batches: int = 0
    start: int = 1000
    weight: float = 1.0


@dataclass(frozen=True)
class Optimiser:
    """[optimiser]: learning rates; None: the head's is that of the backbone, the loss's that of its paper."""

    name: str = "adam"
    lr: float = 1e-5
    head_lr: float | None = None
    loss_lr: float | None = None
    weight_decay: float = 0.0
    clipping: Clipping = field(default=Clipping(), metadata=inlined("clip_"))
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class Train:
    """[train]: how long (`steps`, `epochs`, or as `minutes` allow), how often to validate, when to stop."""

    steps: int | None = None
    epochs: int | None = None
    minutes: float | None = None  # of the whole run, evaluation included
    plan: Plan = field(default=Plan(), metadata=inlined())
    validate_epochs: int | None = None  # validate every so many epochs, whatever validate_every says
    blend: tuple[float, ...] = ()  # shares of the trained weights to try against those at the start
    chunk: int | None = None  # images that pass the network at a time, with the loss on all; None: all at once
    deliver: Literal["trained", "best"] = "trained"  # "best": what validates best, trained or not (fit/candidates.py)
    dim: int | Literal["auto"] = "auto"  # the most dimensions of what is delivered; "auto": as many as pay
    precision: Precision = "auto"
    device: str = "auto"

    def __post_init__(self) -> None:
        minutes = self.minutes
        check(
            minutes is None or (minutes > 0 and math.isfinite(minutes)),
            f"train.minutes must be a positive number of minutes, not {minutes}: give for example 10",
        )
        check(self.dim == "auto" or self.dim > 0, f'train.dim must be at least 1 or "auto", not {self.dim}')


@dataclass(frozen=True)
class Evaluation:
    """[evaluation]: the geometry of comparisons, the metrics on test images (empty: all ranking metrics) and those on
    train images, where the spectrum [math F.7] and the distances [math F.8] are measured."""

    geometry: Geometry = "sphere"
    metrics: tuple[str, ...] = ()
    train: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """A whole run as plain data."""

    loss: Member
    sampler: Member
    seed: int = 0
    data: Data = Data()
    protocol: ProtocolSettings = ProtocolSettings()
    images: Images = Images()
    model: Network = Network()
    head: HeadOnly = HeadOnly()
    features: FrozenFeatures | None = None  # [features], even without a key in it, turns it on
    miner: Member | None = None
    regularisers: Mapping[str, Settings] = field(default_factory=dict)
    memory: Memory = Memory()
    ccp: Chance | None = None  # [ccp], even without a key in it, turns it on
    mixup: Mixup | None = None  # likewise
    optimiser: Optimiser = Optimiser()
    schedule: Schedule = field(default=Schedule())
    train: Train = Train()
    evaluation: Evaluation = Evaluation()
