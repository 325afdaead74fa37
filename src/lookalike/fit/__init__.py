"""The whole way from a folder of labelled images to a proven, saved model, as one function."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lookalike.errors import check
from lookalike.evaluation import Result
from lookalike.fit.choose import Source, again, choose
from lookalike.fit.stages import Stages
from lookalike.fit.summary import header
from lookalike.models import Model
from lookalike.protocols.unseen import Judged
from lookalike.recipe import to_toml
from lookalike.recipe.begin import validation
from lookalike.training import JsonLines, checkpoint, to_all, train
from lookalike.training.folder import RunFolder
from lookalike.training.log import Tell, ignore
from lookalike.training.run import Ending, Stop

__all__ = ["Run", "fit"]


@dataclass(frozen=True)
class Run:
    """A finished run: its folder, the model, and what it is worth on unseen classes beside its baselines."""

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


def fit(
    source: Source = None,
    out: str | Path = "run",
    *,
    recipe: str | Path | Mapping[str, Any] | None = None,
    overrides: Sequence[str] = (),
    audit: bool = True,
    resume: bool = False,
    fresh: bool = False,
    tell: Tell = ignore,
    stop: Stop = lambda: False,
) -> Run:
    """Train on some classes, prove it on others, save everything to `out`.

    `source` is whatever `data.load` takes, or a Dataset; without it the recipe's own, or the embedded glyphs. Without a
    recipe one is chosen from the images and from what is installed; `overrides` such as "train.minutes=10" change it.
    `resume` goes on with the run in `out`, `fresh` replaces it. `tell` hears what happens, `stop` is asked after every
    step.
    """
    folder = RunFolder(Path(out))
    check(not resume or folder.begun, f"there is no run to resume in {folder.path}: leave out --resume")
    dataset, chosen = again(folder, source, recipe, overrides) if resume else choose(source, recipe, overrides)
    folder.prepare(resume, fresh)
    log = JsonLines(folder.log)
    stages = Stages(chosen, folder, to_all(log, tell))
    if resume:
        log.rewind(checkpoint.step(folder.checkpoint))
    else:
        folder.write(folder.recipe, to_toml(chosen, header()))
    now = time.strftime("%Y-%m-%dT%H:%M:%S")
    stages.tell({"event": "start", "time": now, "data": dataset.summary(), "resumed": resume})
    divided = stages.part(stages.look(dataset) if audit else dataset)
    started = checkpoint.exists(folder.checkpoint)
    model, loop, plan = stages.begin(divided, started)
    stages.stage(f"training, from step {checkpoint.step(folder.checkpoint)}" if started else "training")
    validate = validation(stages.recipe, model, divided.validation)
    ending = train(loop, plan, validate=validate, folder=folder.checkpoint, tell=stages.tell, stop=stop)
    return Run(folder.path, model, tuple(stages.prove(model, divided, ending)), ending)
