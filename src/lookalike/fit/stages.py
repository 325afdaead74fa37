"""The stages of a run up to its training, in the order they happen: look, part, begin, plan. `prove` is the last."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import torch

from lookalike import data
from lookalike.data import Dataset
from lookalike.errors import check
from lookalike.features import embed
from lookalike.files import write_text
from lookalike.fit.summary import header
from lookalike.models import Model, Preprocessing
from lookalike.protocols.class_disjoint import Parts
from lookalike.recipe import Recipe, build, to_toml
from lookalike.recipe.prepare import fill_bank, needs_features, prepare_head, validation
from lookalike.recipe.protocol import measure, parts
from lookalike.runs import checkpoint
from lookalike.runs.folder import RunFolder
from lookalike.runs.log import Watcher
from lookalike.training import Plan, unreachable_margin
from lookalike.training.blend import blend
from lookalike.training.loop import Loop
from lookalike.training.rehearsal import seconds_per_step
from lookalike.training.run import Ending, Validate

SPARE = 0.95  # of the time budget is planned for
PAGE = 8.0  # seconds for the report, mostly its map and its figures


class Ready(NamedTuple):
    """A network, the loop around it, and how long it will run."""

    model: Model
    loop: Loop
    plan: Plan


class Stages:
    """One run; `recipe` is completed on the way (the clock may decide on the number of steps)."""

    def __init__(self, recipe: Recipe, folder: RunFolder, tell: Watcher, began: float | None = None) -> None:
        self.recipe, self.folder, self.tell = recipe, folder, tell
        self.began = time.monotonic() if began is None else began  # time budgets count from here
        self.reserved = 0.0  # seconds of them for what comes after the evaluation

    def stage(self, name: str) -> Callable[[int, int], None]:
        self.tell({"event": "stage", "name": name})
        return lambda done, total: self.tell({"event": "progress", "name": name, "done": done, "total": total})

    def note(self, text: str) -> None:
        self.tell({"event": "note", "text": text})

    def look(self, dataset: Dataset) -> Dataset:
        """Audit the images; near duplicates will stay on one side of the split."""
        found = data.audit(dataset, progress=self.stage("looking at the images"))
        write_text(self.folder.audit, json.dumps(found.as_json(), indent=2, ensure_ascii=False))
        check(found.usable, f"{dataset.name} cannot be learnt from: {found.verdict}")
        for finding in found.findings:
            self.note(f"{finding.count:,} {finding.kind}: {finding.meaning}")
        return dataset if dataset.groups is not None else replace(dataset, groups=found.duplicates)

    def part(self, dataset: Dataset) -> Parts:
        """Decode every image once, and part the classes."""
        ready = data.decoded(dataset, self.side(), progress=self.stage("decoding the images"))
        divided = parts(self.recipe, ready)
        others = tuple((name, data.decoded(part, self.side())) for name, part in divided.others)
        named = zip(("train", "validation", "test"), divided[:3], strict=True)
        told = [f"{name} {part.present:,} classes, {len(part):,} images" for name, part in named if part is not None]
        self.note("; ".join(told) + "; no class in two of them")
        if self.recipe.protocol.select == "test_max":
            self.note("the test images choose the weights, as some papers do: the figures are optimistic")
        elif divided.validation is None:
            self.note("no classes are held back for validation: the last weights are kept, not the best")
        return divided._replace(others=others)

    def side(self) -> int:
        """The shorter side that images are kept in."""
        side = build.views(self.recipe, Preprocessing()).preprocessing.resize
        assert side is not None
        return side

    def begin(self, divided: Parts, started: bool) -> Ready:
        """Build everything; a run that has not `started` yet begins its head, its bank and its plan."""
        model = build.model(self.recipe)
        model.classes = divided.train.label_names
        loop = build.loop(self.recipe, model, divided.train)
        trouble = unreachable_margin(loop.objective.loss)  # type: ignore[arg-type]
        if trouble is not None:
            self.note(trouble.advice)
        rate = None
        if not started:
            if needs_features(self.recipe):
                rate = prepare_head(self.recipe, model, divided.train, self.stage("features for the head"))
            if loop.bank is not None:
                fill_bank(loop, model, divided.train, self.stage("filling the embedding bank"))
            if self.recipe.train.blend and loop.ranks.first:
                checkpoint.save_tensors(self.folder.start, model.embedder.state_dict())
        plan = self.plan(loop, model, divided, rate)
        write_text(self.folder.recipe, to_toml(self.recipe, header()))
        return Ready(model, loop, plan)

    def plan(self, loop: Loop, model: Model, divided: Parts, rate: float | None) -> Plan:
        """The recipe's steps, or as many as its minutes allow besides the final evaluation."""
        wanted = self.recipe.train
        if wanted.minutes is None:
            return build.plan(self.recipe, loop.schedule.steps, batches=len(loop.sampler))
        rate = rate or _rate(model, divided.train)
        held = 0 if divided.validation is None else len(divided.validation)
        afterwards = (2.5 * len(divided.test) + len(wanted.blend) * held) / rate + self.reserved
        left = SPARE * 60 * wanted.minutes - (time.monotonic() - self.began) - afterwards
        if wanted.steps is None:
            step = seconds_per_step(loop) + held / rate / wanted.plan.validate_every
            left, step = loop.ranks.from_first(lambda: (left, step))  # clocks differ, plans must not
            check(left > step, f"{wanted.minutes:g} minutes do not suffice for a step and the evaluation: give more")
            self.recipe = replace(self.recipe, train=replace(wanted, steps=int(left / step)))
            self.note(f"{int(left / step):,} steps of {step:.2f} s fit {wanted.minutes:g} minutes")
        assert self.recipe.train.steps is not None
        loop.schedule = replace(loop.schedule, steps=self.recipe.train.steps)
        return build.plan(self.recipe, self.recipe.train.steps, left, len(loop.sampler))

    def validation(self, model: Model, divided: Parts) -> Callable[[], Mapping[str, float]] | None:
        """What to ask while training: the validation classes, if there are any, or test where it chooses."""
        if self.recipe.protocol.select != "test_max":
            return validation(self.recipe, model, divided.validation)
        wanted = self.recipe.evaluation.metrics
        metrics = {"recall@1", "map@r", self.recipe.train.plan.select, *wanted} if wanted else ()
        how, test = measure(self.recipe), divided.test
        return lambda: how("", "model", embed(model, test), test, model.geometry, sorted(metrics)).result

    def blend(self, model: Model, validate: Validate | None, ending: Ending) -> Ending:
        """Average the weights with those at the start, as the validation classes like it best."""
        shares = self.recipe.train.blend
        if not shares or validate is None:
            return ending
        self.stage("blending with the weights before training")
        before = checkpoint.load_tensors(self.folder.start)
        share, values = blend(model.embedder, before, shares, validate, self.recipe.train.plan.select)
        self.note(f"{share:.0%} trained, {1 - share:.0%} as before training: validation map@r {values['map@r']:.3f}")
        return replace(ending, best=values)

    def watch(self) -> Watcher:
        """What training tells; looks at test are named as such."""
        if self.recipe.protocol.select != "test_max":
            return self.tell
        return lambda event: self.tell({**event, "on": "test"} if event["event"] == "validation" else event)


def _rate(model: Model, part: Dataset) -> float:
    """Images embedded per second."""
    few = part.subset(torch.arange(min(64, len(part))))
    start = time.monotonic()
    embed(model, few)
    return len(few) / (time.monotonic() - start)
