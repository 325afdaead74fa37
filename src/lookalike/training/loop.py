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
from torch.utils.data import DataLoader

from lookalike.data import AugmentedImages, Tickets, loader
from lookalike.errors import UserError, check, unknown
from lookalike.geometry import Geometry, normalise
from lookalike.models import Unfreezing
from lookalike.samplers import EmbeddingBank, Sampler
from lookalike.training.schedules import Schedule

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
    """Limits on the gradient: its norm over all parameters, then each of its values (SPEC E: 10 and 10)."""

    norm: float | None = None
    value: float | None = None

    def __call__(self, parameters: list[nn.Parameter]) -> None:
        if self.norm is not None:
            nn.utils.clip_grad_norm_(parameters, self.norm)
        if self.value is not None:
            nn.utils.clip_grad_value_(parameters, self.value)


@dataclass
class Loop:
    """`advance` trains on the next batch; `state_dict` holds all it takes to go on as if nothing had happened.

    `prepare` turns what the dataset gives into what the network takes, a whole batch at a time on its device. `bank`
    keeps the embedding of every image, for samplers that choose by it.
    """

    network: nn.Module
    objective: nn.Module
    optimiser: torch.optim.Optimizer
    schedule: Schedule
    dataset: torch.utils.data.Dataset[Any]
    sampler: Sampler
    prepare: Callable[[Tensor], Tensor] = lambda inputs: inputs
    bank: EmbeddingBank | None = None
    clipping: Clipping = Clipping()
    precision: Precision = "float32"
    unfreezing: Unfreezing | None = None
    workers: int = 0
    geometry: Geometry = "sphere"  # in which the bank keeps embeddings
    generators: Mapping[str, torch.Generator] = field(default_factory=dict)  # those that miners and losses draw from
    step: int = field(default=0, init=False)
    batches: Iterator[Any] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.precision not in get_args(Precision):
            raise unknown("precision", self.precision, get_args(Precision))
        check(self.workers >= 0, f"workers must not be negative, not {self.workers}")

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    @property
    def epoch(self) -> int:
        return self.sampler.course.epoch

    def advance(self) -> Trained:
        """One batch: load, forward, loss, backward, update."""
        clock = Clock()
        inputs, labels, rows = self._next()
        clock.lap("load")
        self.network.train()
        self.schedule.apply(self.optimiser, self.step)
        with self._autocast():
            embeddings = self.network(inputs)
        embeddings.retain_grad()
        clock.lap("forward")
        terms = self.objective(embeddings, labels, self.step)
        total = torch.stack(list(terms.values())).sum()
        clock.lap("loss")
        self.optimiser.zero_grad(set_to_none=True)
        total.backward()  # type: ignore[no-untyped-call]
        clock.lap("backward")
        self.clipping([parameter for group in self.optimiser.param_groups for parameter in group["params"]])
        self.optimiser.step()
        self._consumed(rows, embeddings)
        clock.lap("update")
        assert embeddings.grad is not None
        named = {name: term.detach() for name, term in terms.items()}
        return Trained(named, embeddings.detach(), labels, embeddings.grad, clock.laps)

    def _next(self) -> tuple[Tensor, Tensor, Tensor | None]:
        if self.sampler.course.position == 0:
            self._epoch_started()
        if self.batches is None:
            self.batches = stream(self.dataset, self.sampler, self.workers)
        inputs, labels, *rest = next(self.batches)
        check(len(labels) == len(inputs), f"the dataset gives {len(labels)} labels for {len(inputs)} inputs")
        return self.prepare(inputs.to(self.device)), labels.to(self.device), rest[0] if rest else None

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

    def _consumed(self, rows: Tensor | None, embeddings: Tensor) -> None:
        if self.bank is not None:
            if rows is None:
                raise UserError("a sampler with an embedding bank needs a dataset that gives (input, label, row)")
            self.bank.update(rows, normalise(embeddings.detach(), self.geometry))
        self.sampler.step()
        self.step += 1

    def _autocast(self) -> AbstractContextManager[Any]:
        kind = self.device.type
        half = self.precision == "bfloat16" or (self.precision == "auto" and has_bfloat16(kind))
        return torch.autocast(kind, dtype=torch.bfloat16) if half else nullcontext()

    def parts(self) -> dict[str, Any]:
        """Whatever has a state, by name."""
        named = {
            "network": self.network,
            "objective": self.objective,
            "optimiser": self.optimiser,
            "schedule": self.schedule,
            "sampler": self.sampler,
            "bank": self.bank,
        }
        return {name: part for name, part in named.items() if part is not None}

    def state_dict(self) -> dict[str, Any]:
        state = {name: part.state_dict() for name, part in self.parts().items()}
        drawn = {name: generator.get_state() for name, generator in self.generators.items()}
        return {**state, "step": self.step, "generators": drawn, "torch": torch.get_rng_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name, part in self.parts().items():
            part.load_state_dict(state[name])
        for name, generator in self.generators.items():
            generator.set_state(state["generators"][name])
        torch.set_rng_state(state["torch"])
        self.step, self.batches = state["step"], None
        self._freeze()


class Clock:
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


def stream(dataset: torch.utils.data.Dataset[Any], sampler: Sampler, workers: int = 0) -> Iterator[Any]:
    """Batches without end, from where the sampler stands; who takes one tells the sampler by `step`."""
    course = sampler.course
    if isinstance(dataset, AugmentedImages):
        tickets = Tickets(sampler, course.epoch, course.position)
        load: DataLoader[Any] = loader(dataset, tickets, workers)
    else:
        tickets = None
        own = torch.Generator().manual_seed(course.seed)  # else each epoch consumes torch's global random numbers
        load = DataLoader(
            dataset, batch_sampler=sampler, num_workers=workers, generator=own, persistent_workers=workers > 0
        )
    while True:
        yield from load
        if tickets is not None:
            tickets.set_epoch(course.epoch)
