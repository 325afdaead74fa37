"""A recipe as frozen dataclasses: one per table of the file, every key with its default.

Where the code works with a dataclass (an architecture, a schedule, a plan), the table is that dataclass or holds it
`inlined`. Fields marked as a `FACT`, such as the number of steps a schedule spans, are not keys of a recipe: data,
model or the run decide them. A table with a field `settings` passes its other keys on to the member it names, which
checks them. What is None is not written: a key that is new begins with None, so that recipes of before, and the digests
of the studies that rest on them, stay what they were.
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
    """[loss], [miner], [sampler]: a member of a catalogue.

    name: as `lookalike list` shows it.
    preset: settings of a paper, by name; None: the member's defaults.
    settings: the member's own, which come before those of the preset.
    """

    name: str
    preset: str | None = None
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class Data:
    """[data]: where the images are, and how classes are split.

    source: whatever `data.load` takes; the command line may give it instead.
    name: the dataset this recipe is for; None: any.
    test: share of the classes, where the dataset has no splits.
    validation: share of the train classes; 0: none.
    workers: processes that load images; 0: the one that trains.
    marks: an index, or a table, whose marks of people join the images (docs/loop.md).
    """

    source: str = ""
    name: str | None = None
    test: float = 0.5
    validation: float = 0.1
    workers: int = 0
    marks: str | None = None


@dataclass(frozen=True)
class ProtocolSettings:
    """[protocol]: who trains, who queries, how many runs, and what chooses the weights (docs/recipes.md).

    name: "class_disjoint", "cross_validation", "query_gallery" or "vehicle_id".
    select: "validation", or "test_max": every test metric's maximum over training, which is optimistic.
    seeds: runs, from the recipe's seed on.
    folds: cross_validation: ranges of the train classes.
    models: cross_validation: how many of the folds are trained; None: all.
    fold: cross_validation: only this one, counted from 1.
    gallery: vehicle_id: "all" other images, or "one_per_class": the classic draw.
    repeats: vehicle_id, one_per_class: number of draws.
    """

    name: str = "class_disjoint"
    select: str = "validation"
    seeds: int = 1
    folds: int = 4
    models: int | None = None
    fold: int | None = None
    gallery: str = "all"
    repeats: int = 10


@dataclass(frozen=True)
class Images:
    """[images]: what the network sees; a key that is None comes from the preset.

    preset: the crops of a protocol: "roth", "mlrc", "ms", "fastap" or "glyphs".
    size: the side of the network's input, in pixels.
    short_side: the shorter side before cropping; None: in the preset's proportion to the size.
    warp: whether both sides get that length, which shows all of a long photo, squeezed; None: as the preset has it.
    area: from … to, the share of the image that a random crop shows.
    flip: how often a train image is mirrored, from 0 to 1.
    """

    preset: str = "roth"
    size: int | None = None
    short_side: int | None = None
    warp: bool | None = None
    area: tuple[float, ...] | None = None
    flip: float | None = None


@dataclass(frozen=True)
class Network:
    """[model]: backbone and embedder.

    architecture: its fields are keys of this table.
    weights: "pretrained", a file, or the folder of a saved model; None: random.
    head: how its linear layer starts: "default", "principal" (components of the features) or "saved".
    freeze: this stage and all before it do not learn; None: all learn.
    unfreezing: from which epoch the backbone learns: the keys `unfreeze_epoch` and `unfreeze_every`.
    lora: the rank of the matrices that learn beside the linear layers of the backbone, instead of these.
    """

    architecture: Architecture = field(default=Architecture("conv4"), metadata=inlined())
    weights: str | None = None
    head: str = "default"
    freeze: str | None = None
    unfreezing: Unfreezing = field(default=Unfreezing(), metadata=inlined("unfreeze_"))
    lora: int | None = None


@dataclass(frozen=True)
class Networks:
    """[networks]: what a run measures on a sample of its train classes; the best becomes model.backbone, images.size.

    backbones: names of networks; none: only model.backbone.
    sizes: of their inputs, in pixels; none: only images.size.
    poolings: of networks with a class token; none: only model.pooling.
    warps: values of images.warp, for photos that are not square; none: only images.warp.
    """

    backbones: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    poolings: tuple[str, ...] = ()
    warps: tuple[bool, ...] = ()


@dataclass(frozen=True)
class HeadOnly:
    """[head]: training of the head alone, on features of the frozen backbone, before everything learns.

    steps: how many; 0: none.
    lr: their learning rate at the start; it falls to 0.
    batch_size: the images of a batch, or fewer where there are not enough.
    per_class: how many of them come from one class.
    """

    steps: int = 0
    lr: float = 1e-3
    batch_size: int = 128
    per_class: int = 4


@dataclass(frozen=True)
class FrozenFeatures:
    """[features]: the backbone is frozen and the head trains on its features, which are computed once and cached.

    views: random crops of every train image, beside its centre.
    backend: what computes the features: "torch", "onnx", or "auto": onnx where it gives the same.
    upto: only the stages up to this one are frozen and cached, as maps; the later ones learn. None: all are frozen.
    half: whether maps are kept in half precision; None: they are.
    """

    views: int = 0
    backend: BackendName = "auto"
    upto: str | None = None
    half: bool | None = None


@dataclass(frozen=True)
class Memory:
    """[memory]: the cross-batch memory.

    batches: how many past batches it holds; 0: there is none.
    start: the step from which it acts.
    weight: of the loss against it.
    """

    batches: int = 0
    start: int = 1000
    weight: float = 1.0


@dataclass(frozen=True)
class Optimiser:
    """[optimiser]: how weights change.

    name: "adam", "adamw", "rmsprop" or "sgd".
    lr: the learning rate of the backbone.
    head_lr: that of the head; None: the backbone's.
    loss_lr: that of what the loss learns; None: as its paper has it.
    weight_decay: of the network; with [ccp] of the proxies too.
    stage_decay: the rate of each stage of the backbone as a share of the next one's; None: all learn alike.
    clipping: limits on the gradient: the keys `clip_norm` and `clip_value`.
    settings: the optimiser's own, such as momentum.
    """

    name: str = "adam"
    lr: float = 1e-5
    head_lr: float | None = None
    loss_lr: float | None = None
    weight_decay: float = 0.0
    stage_decay: float | None = None
    clipping: Clipping = field(default=Clipping(), metadata=inlined("clip_"))
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class Train:
    """[train]: how long (in steps or epochs, or as minutes allow), how often to validate, when to stop.

    steps: of the run; None: epochs or minutes decide.
    epochs: of the run, instead of steps.
    minutes: of the whole run, evaluation included; None: no limit.
    plan: its fields are keys of this table.
    validate_epochs: epochs between two validations, whatever `validate_every` says.
    blend: shares of the trained weights to try against those at the start.
    chunk: images that pass the network at a time, with the loss on all; None: all at once.
    deliver: "trained"; "best": what validates best, trained or not; "untrained": the network as it is, a baseline.
    suspects: "keep" labels, "weigh" them by their chance, or "drop" those in doubt; None: what validates best.
    refit_on_all: once proven, make what is delivered of all classes; the figures stay those of the proof.
    dim: the most dimensions of what is delivered; "auto": as many as pay.
    most_ms: the most milliseconds that [networks] may take for an image on this machine; None: no limit.
    precision: "float32", "bfloat16", or "auto": bfloat16 on a GPU that has it.
    device: as torch names it; "auto": a GPU where there is one.
    compile: whether torch.compile makes the network's pass, which takes a minute or more before the first step.
    """

    steps: int | None = None
    epochs: int | None = None
    minutes: float | None = None
    plan: Plan = field(default=Plan(), metadata=inlined())
    validate_epochs: int | None = None
    blend: tuple[float, ...] = ()
    chunk: int | None = None
    deliver: Literal["trained", "best", "untrained"] = "trained"
    suspects: Literal["keep", "weigh", "drop"] | None = None
    refit_on_all: bool | None = None
    dim: int | Literal["auto"] = "auto"
    most_ms: float | None = None
    precision: Precision = "auto"
    device: str = "auto"
    compile: bool | None = None

    def __post_init__(self) -> None:
        minutes = self.minutes
        check(
            minutes is None or (minutes > 0 and math.isfinite(minutes)),
            f"train.minutes must be a positive number of minutes, not {minutes}: give for example 10",
        )
        check(self.dim == "auto" or self.dim > 0, f'train.dim must be at least 1 or "auto", not {self.dim}')
        most = self.most_ms
        check(most is None or most > 0, f"train.most_ms must be a positive number of milliseconds, not {most}")


@dataclass(frozen=True)
class Evaluation:
    """[evaluation]: what is measured.

    geometry: where embeddings are compared: "sphere", "ball" or "none".
    metrics: on test images; empty: all ranking metrics.
    train: on train images, such as the spectrum [math F.7] and the distances [math F.8].
    """

    geometry: Geometry = "sphere"
    metrics: tuple[str, ...] = ()
    train: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """A whole run as plain data: one field per table of the file.

    loss: what is minimised.
    sampler: which images meet in a batch.
    seed: decides all that is random.
    data: where the images are.
    protocol: who trains and who tests.
    images: what the network sees of them.
    model: the network.
    networks: what to choose the network and the size of its images from; [networks] turns it on.
    head: training of the head alone, before.
    features: training on frozen features; [features], even without a key in it, turns it on.
    miner: which pairs or triplets count; None: the loss decides.
    regularisers: the settings of each, by name.
    memory: past embeddings as further candidates.
    ccp: chance constraints; [ccp], even without a key in it, turns them on.
    mixup: manifold mixup, turned on likewise.
    optimiser: how weights change.
    schedule: how its learning rates do.
    train: how long, and what is delivered.
    evaluation: what is measured.
    """

    loss: Member
    sampler: Member
    seed: int = 0
    data: Data = Data()
    protocol: ProtocolSettings = ProtocolSettings()
    images: Images = Images()
    model: Network = Network()
    networks: Networks | None = None
    head: HeadOnly = HeadOnly()
    features: FrozenFeatures | None = None
    miner: Member | None = None
    regularisers: Mapping[str, Settings] = field(default_factory=dict)
    memory: Memory = Memory()
    ccp: Chance | None = None
    mixup: Mixup | None = None
    optimiser: Optimiser = Optimiser()
    schedule: Schedule = field(default=Schedule())
    train: Train = Train()
    evaluation: Evaluation = Evaluation()

    @property
    def head_only(self) -> bool:
        """Whether the head alone learns, on features that do not change."""
        return self.features is not None and self.features.upto is None
