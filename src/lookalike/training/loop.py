"""One training run: everything that changes while a network learns, and the one step that changes it.

Nothing here knows a loss, a network or a dataset: any `nn.Module` that maps inputs to embeddings, any torch dataset of
(input, label), any objective that maps (embeddings, labels, step) to named terms.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from lookalike.errors import UserError, check, unknown
from lookalike.geometry import Geometry, normalise
from lookalike.models import Unfreezing
from lookalike.processes import Ranks
from lookalike.samplers import BatchSampler, EmbeddingBank
from lookalike.training import optimisers
from lookalike.training.ccp import ChanceConstraints
from lookalike.training.chunked import InChunks, at_once, check_chunks
from lookalike.training.distributed import Split, split
from lookalike.training.divergence import check_gradient, check_outputs, check_terms, gradient_norm
from lookalike.training.mixup import Mixer, Mixture, check_whole_batch
from lookalike.training.schedules import Plateau, Schedule
from lookalike.training.shared_norm import share_statistics
from lookalike.training.stream import stream

Precision = Literal["auto", "float32", "bfloat16"]


class Trained(NamedTuple):
    """What one step did."""

    terms: Mapping[str, Tensor]
    embeddings: Tensor
    labels: Tensor
    gradient: Tensor  # of the embeddings
    seconds: Mapping[str, float]  # load, forward, loss, backward, update


@dataclass(frozen=True)
class Clipping:
    """Limits on the gradient ([math E]: 10 and 10).

    norm: the largest norm over all parameters; None: no limit.
    value: the largest size of each value, after that; None: no limit.
    """

    norm: float | None = None
    value: float | None = None

    def __call__(self, parameters: list[nn.Parameter]) -> Tensor:
        """Clip in place; the norm there was before."""
        if self.norm is not None:
            norm = nn.utils.clip_grad_norm_(parameters, self.norm)
        else:
            norm = gradient_norm(parameters)
        if self.value is not None:
            nn.utils.clip_grad_value_(parameters, self.value)
        return norm


class Batch(NamedTuple):
    """What this process has of a batch, and how it was shared out (None: it was not)."""

    inputs: Tensor
    labels: Tensor
    rows: Tensor | None
    split: Split | None


@dataclass
class Loop:
    """`advance` trains on the next batch; `state_dict` holds all it takes to resume as if nothing had happened.

    network: what learns: from inputs to embeddings, n × d.
    objective: from (embeddings, labels, step) to named terms; their sum is minimised.
    optimiser: holds the parameters that learn, of network and objective, in groups with their own rates.
    schedule: the factor on those rates at every step.
    dataset: gives (input, label), or (input, label, row), which a bank needs.
    sampler: composes batches for all processes of `ranks` together.
    prepare: `prepare(inputs)` turns a batch of `inputs` from the dataset, on the device, into what the network takes.
    bank: keeps the embedding of every image, for samplers that choose by it.
    clipping: limits on the gradient; none unless set.
    precision: of the network's pass: "float32", "bfloat16", or "auto": bfloat16 on a GPU that has it.
    compiled: whether torch.compile makes the network's pass; its weights stay in `network`.
    unfreezing: which stages are frozen in which epoch; None leaves the network as it is.
    workers: processes that load the data; 0: this one.
    geometry: in which the bank keeps embeddings: "sphere", "ball" or "none".
    generators: those that miners and losses draw from, by name, so that they are saved and resumed.
    chunk: how many inputs go through the network at a time; None: the whole batch.
    mixer: draws the mixtures of mixup; None: nothing is mixed.
    strategy: CCP, which steers training beyond the loss; None: nothing does.
    ranks: the processes of this run; unless given, those of torch.distributed.
    """

    network: nn.Module
    objective: nn.Module
    optimiser: torch.optim.Optimizer
    schedule: Schedule
    dataset: torch.utils.data.Dataset[Any]
    sampler: BatchSampler
    prepare: Callable[[Tensor], Tensor] = lambda inputs: inputs
    bank: EmbeddingBank | None = None
    clipping: Clipping = Clipping()
    precision: Precision = "float32"
    compiled: bool = False
    unfreezing: Unfreezing | None = None
    workers: int = 0
    geometry: Geometry = "sphere"
    generators: Mapping[str, torch.Generator] = field(default_factory=dict)
    chunk: int | None = None
    mixer: Mixer | None = None
    strategy: ChanceConstraints | None = None
    ranks: Ranks = field(default_factory=Ranks.current)
    step: int = field(default=0, init=False)
    batches: Iterator[Any] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.precision not in get_args(Precision):
            raise unknown("precision", self.precision, get_args(Precision))
        check(self.workers >= 0, f"workers must be at least 0, not {self.workers}")
        if self.mixer is not None:
            check_whole_batch(self.chunk)
        self.forward: Any = torch.compile(self.network) if self.compiled else self.network
        self.plateau = Plateau(self.schedule.patience)
        self.passage = at_once if self.chunk is None else InChunks(self.chunk)
        if self.ranks.count > 1:
            share_statistics(self.network)

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    @property
    def epoch(self) -> int:
        return self.sampler.epoch

    def advance(self) -> Trained:
        """One batch: load, forward, loss, backward, update."""
        clock = StepClock()
        batch = self._next()
        clock.lap("load")
        self.network.train()
        self.schedule.apply(self.optimiser, self.step, self.plateau.reductions)
        mixture = Mixture() if self.mixer is None else self.mixer.draw(len(batch.labels))
        outputs, back = self.passage(lambda inputs: self._embed(inputs, mixture), batch.inputs)
        embeddings = whole(outputs, batch.split).requires_grad_()
        check_outputs(embeddings, self.step + 1)
        clock.lap("forward")
        terms = self._terms(embeddings, mixture, batch)
        check_terms(terms, self.step + 1)
        total = torch.stack(list(terms.values())).sum()
        clock.lap("loss")
        self.optimiser.zero_grad(set_to_none=True)
        total.backward()  # type: ignore[no-untyped-call]
        assert embeddings.grad is not None
        back(embeddings.grad if batch.split is None else batch.split.own(embeddings.grad))
        clock.lap("backward")
        self._update()
        labels = whole(batch.labels, batch.split)
        self._consumed(batch, embeddings)
        clock.lap("update")
        named = {name: term.detach() for name, term in terms.items()}
        return Trained(named, embeddings.detach(), labels, embeddings.grad, clock.laps)

    def _next(self) -> Batch:
        if self.sampler.position == 0:
            self._epoch_started()
        if self.batches is None:
            pinned = self.device.type == "cuda"
            self.batches = stream(self.dataset, self.sampler, self.workers, self.ranks, pinned)
        inputs, labels, *rest = next(self.batches)
        check(len(labels) == len(inputs), f"the dataset gives {len(labels)} labels for {len(inputs)} inputs")
        shared = split(self.ranks, self.sampler)
        inputs = inputs.to(self.device, non_blocking=True)  # from pinned memory, while the step before is computed
        return Batch(inputs, labels.to(self.device), rest[0] if rest else None, shared)

    def _embed(self, inputs: Tensor, mixture: Mixture) -> Tensor:
        with self._autocast():
            return mixture.embed(self.forward, self.prepare(inputs))

    def _terms(self, embeddings: Tensor, mixture: Mixture, batch: Batch) -> dict[str, Tensor]:
        """The objective's terms; of a mixed batch, on both sets of labels with their weights."""
        terms: dict[str, Tensor] = {}
        for weight, labels in mixture.label_sets(batch.labels):
            new = self.objective(embeddings, whole(labels, batch.split), self.step)
            terms = {name: weight * term + terms.get(name, 0.0) for name, term in new.items()}
        return terms

    def _update(self) -> None:
        self.ranks.add_up(parameter.grad for parameter in self.network.parameters())
        self.ranks.add_up((parameter.grad for parameter in self.objective.parameters()), mean=True)
        if self.strategy is not None:
            self.strategy.gradients()
        trained = [parameter for group in self.optimiser.param_groups for parameter in group["params"]]
        check_gradient(self.clipping(trained), self.step + 1)
        self.optimiser.step()

    def _epoch_started(self) -> None:
        started: Any = getattr(self.objective, "epoch_started", None)
        if started is not None:
            started(self.epoch)
        self._freeze()

    def _freeze(self) -> None:
        if self.unfreezing is not None:
            freeze: Any = getattr(self.network, "freeze", None)
            if freeze is None:
                raise UserError("an unfreezing schedule needs a network with stages: give an Embedder")
            freeze(self.unfreezing.frozen_at(self.epoch, self.network.backbone.stages))  # type: ignore[union-attr, arg-type]
        if self.chunk is not None:
            check_chunks(self.network.train())

    def _consumed(self, batch: Batch, embeddings: Tensor) -> None:
        if self.bank is not None:
            if batch.rows is None:
                raise UserError("a sampler with an embedding bank needs a dataset that gives (input, label, row)")
            self.bank.update(whole(batch.rows, batch.split), normalise(embeddings.detach(), self.geometry))
        self.sampler.step()
        self.step += 1

    def _autocast(self) -> AbstractContextManager[Any]:
        kind = self.device.type
        half = self.precision == "bfloat16" or (self.precision == "auto" and has_bfloat16(kind))
        return torch.autocast(kind, dtype=torch.bfloat16) if half else nullcontext()

    def parts(self) -> dict[str, Any]:
        """Every part that has a state, by name."""
        named = {
            "network": self.network,
            "objective": self.objective,
            "optimiser": self.optimiser,
            "plateau": self.plateau,
            "sampler": self.sampler,
            "bank": self.bank,
            "strategy": self.strategy,
        }
        return {name: part for name, part in named.items() if part is not None}

    def state_dict(self) -> dict[str, Any]:
        state = {name: part.state_dict() for name, part in self.parts().items()}
        generators = {name: generator.get_state() for name, generator in self.generators.items()}
        return {**state, "step": self.step, "generators": generators, "torch": torch.get_rng_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name, part in self.parts().items():
            if part is self.optimiser:
                optimisers.restore(part, state[name])
            else:
                part.load_state_dict(state[name])
        for name, generator in self.generators.items():
            generator.set_state(state["generators"][name])
        torch.set_rng_state(state["torch"])
        self.step, self.batches = state["step"], None
        self._freeze()


def whole(share: Tensor, split: Split | None) -> Tensor:
    """The rows of all processes."""
    return share if split is None else split.whole(share)


class StepClock:
    """Time per part of a step."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self.last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name], self.last = now - self.last, now


def has_bfloat16(device: str) -> bool:
    """Whether a device computes faster in bfloat16."""
    return device == "cuda" and torch.cuda.is_bf16_supported()
