"""A finished run, and the way through its stages."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lookalike.data import Dataset
from lookalike.evaluation import Result
from lookalike.fit.prove import prove
from lookalike.fit.stages import Stages
from lookalike.fit.summary import header
from lookalike.models import Model
from lookalike.protocols.unseen import Judged
from lookalike.recipe import Recipe, build, of_tree, to_toml, tree
from lookalike.runs import checkpoint
from lookalike.runs.folder import RunFolder
from lookalike.runs.log import Event, Watcher
from lookalike.training import train
from lookalike.training.peak_memory import forget_peak
from lookalike.training.run import Ending, Stop, StoppedError


@dataclass(frozen=True)
class Run:
    """A finished run: its folder, the model, and what it is worth on unseen classes beside its baselines.

    Of several seeds or folds `model` and `entries` are those of the first seed; `content` has all of them.
    """

    folder: Path
    model: Model
    entries: tuple[Judged, ...]  # the model first, then the baselines
    ending: Ending

    @property
    def result(self) -> Result:
        return self.entries[0].result

    @property
    def report(self) -> Path:
        return self.folder / "report.html"

    @property
    def content(self) -> dict[str, Any]:
        """What result.json holds."""
        told: dict[str, Any] = json.loads((self.folder / "result.json").read_text(encoding="utf-8"))
        return told


def stoppable(tell: Watcher, stop: Stop) -> Watcher:
    """Whoever wants to stop need not wait for the first step: so far everything is on disk."""

    def told(event: Event) -> None:
        tell(event)
        if event["event"] in ("stage", "progress") and stop():
            raise StoppedError(f"stopped while {event['name']}")

    return told


def single(dataset: Dataset, stages: Stages, stop: Stop, full: bool) -> Run:
    """One training and its proof, from wherever the checkpoint stands."""
    folder = stages.folder
    divided = stages.part(dataset)
    started = checkpoint.exists(folder.checkpoint)
    model, loop, plan = stages.begin(divided, started)
    stages.stage(f"training, from step {checkpoint.step(folder.checkpoint)}" if started else "training")
    validate = stages.validation(model, divided)
    forget_peak(build.device(stages.recipe))
    ending = train(loop, plan, validate=validate, folder=folder.checkpoint, tell=stages.watch(), stop=stop)
    ending = stages.blend(model, validate, ending)
    return Run(folder.path, model, tuple(prove(stages, model, divided, ending, full)), ending)


def one_of_several(dataset: Dataset, recipe: Recipe, path: Path, tell: Watcher, stop: Stop) -> Run:
    """A run in a folder of its own: begun, or gone on with where it is there already."""
    folder = RunFolder(path)
    with folder.claimed():
        run = folder.begin("either", to_toml(recipe, header()), tell)
        own = of_tree(tree(folder.recipe))  # the clock may have completed it
        return single(dataset, Stages(own, folder, run.tell), stop, full=False)
