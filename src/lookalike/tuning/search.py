"""The search: Tree-structured Parzen Estimator (Bergstra et al., NeurIPS 2011) with median pruning, by optuna.

Any number of processes may work on one search: each takes the next trial, all learn from all results. A search that was
interrupted goes on with the trial it was at.
"""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from lookalike.data import Dataset
from lookalike.errors import UserError, check
from lookalike.fit.choose import check_possible, found
from lookalike.fit.summary import header
from lookalike.recipe import Recipe, of_tree, overridden, to_toml, tree
from lookalike.runs.folder import RunFolder
from lookalike.runs.log import Watcher
from lookalike.training import StoppedError
from lookalike.training.run import Stop
from lookalike.tuning import storage as stored
from lookalike.tuning.space import Corner, Range, draw, take
from lookalike.tuning.trial import judge

FAIR = ("protocol.name=cross_validation", "protocol.select=validation", "protocol.seeds=1", "train.select=map@r")
FOLD = 10**7  # steps of a fold, when trials are compared on the way
HOPELESS = 3  # impossible trials in a row


@dataclass(frozen=True)
class Search:
    """What is searched, where it is kept, and by which data."""

    base: Mapping[str, Any]  # the recipe's tables
    ranges: Sequence[Range]
    dataset: Dataset
    out: Path
    name: str
    url: str  # of the storage
    shared: bool  # by several machines
    seed: int = 0
    heartbeat: int = 30  # seconds

    @staticmethod
    def read(
        path: str | Path,
        out: Path,
        source: str | None = None,
        overrides: Sequence[str] = (),
        url: str | None = None,
        **more: Any,
    ) -> "Search":
        """The search in a recipe with a [tune] table, checked before anything long begins."""
        base, ranges = take(tree(path))
        base = overridden(base, overrides)
        of_tree(base)
        dataset, where = found(source, base)
        base = overridden(base, [f"data.source={json.dumps(where)}"])
        name = more.pop("name", None) or Path(path).stem
        made = Search(base, ranges, dataset, out, name, stored.address(url, out), url is not None, **more)
        made.check_point(draw(ranges, base, Corner()))
        return made

    def check_point(self, said: Sequence[str]) -> Recipe:
        """The recipe of a trial, if it can be."""
        recipe = of_tree(overridden(self.base, [*said, *FAIR]))
        check_possible(recipe, self.dataset)
        return recipe

    def text(self) -> str:
        """What the search is about; workers of one search say the same."""
        return to_toml(of_tree(self.base)) + "\n".join(map(str, self.ranges))


@dataclass(frozen=True)
class Found:
    """The trials of a search, and the recipe of the best one."""

    trials: list[dict[str, Any]]  # number, state, value, params, seconds
    best: dict[str, Any]
    recipe: Recipe


def search(wanted: Search, trials: int, tell: Watcher, stop: Stop = lambda: False) -> Found:
    """Try points until so many trials are finished, by whomever; write OUT/best.toml."""
    check(trials > 0, f"--trials is at least 1, not {trials}")
    try:
        (wanted.out / "trials").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {wanted.out} ({error.strerror}): give another --out") from None
    with stored.opened(wanted.url, wanted.heartbeat) as storage:
        study = _joined(wanted, storage)
        _work(wanted, study, trials, tell, stop)
        return _found(wanted, study)


def _joined(wanted: Search, storage: Any) -> Any:
    optuna = stored.library()
    study = optuna.create_study(
        storage=storage, study_name=wanted.name, direction="maximize", load_if_exists=True,
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5),
    )  # fmt: skip
    text = wanted.text()
    known = study.user_attrs.get("search", text)
    check(known == text, f"the search '{wanted.name}' is about another recipe: give another --name or --out")
    study.set_user_attr("search", text)
    return study


def _work(wanted: Search, study: Any, trials: int, tell: Watcher, stop: Stop) -> None:
    optuna = stored.library()
    hopeless = 0
    while _finished(study) < trials:
        study.sampler = optuna.samplers.TPESampler(seed=_seed(wanted, len(study.trials)), group=True, multivariate=True)
        point = _Point(wanted, study, trials, tell, stop)
        study.optimize(point, n_trials=1, catch=(UserError,))
        hopeless = hopeless + 1 if point.failed else 0
        check(hopeless < HOPELESS, f"{hopeless} trials in a row could not be run, the last because {point.failed}")


def _seed(wanted: Search, count: int) -> int:
    """Another one for every trial; machines that share a search must not draw the same points."""
    who = f"{platform.node()} {os.getpid()}" if wanted.shared else ""
    return int.from_bytes(blake2b(f"{wanted.seed} {count} {who}".encode(), digest_size=4).digest(), "big")


def _finished(study: Any) -> int:
    return sum(trial.state.name in ("COMPLETE", "PRUNED") for trial in study.trials)


class _Point:
    """One trial, as optuna calls it."""

    def __init__(self, wanted: Search, study: Any, trials: int, tell: Watcher, stop: Stop) -> None:
        self.wanted, self.study, self.trials, self.tell, self.stop = wanted, study, trials, tell, stop
        self.failed = ""

    def __call__(self, trial: Any) -> float:
        said = draw(self.wanted.ranges, self.wanted.base, trial)
        name = f"trial {trial.number} ({_finished(self.study)} of {self.trials} done): {', '.join(said)}"
        self.tell({"event": "stage", "name": name})
        try:
            value = self.run(trial, self.wanted.check_point(said))
        except StoppedError:
            stored.repeat(self.study, trial, trial.user_attrs.get("tries", 1))
            raise
        except UserError as mistake:
            self.failed = str(mistake)
            trial.set_user_attr("why", self.failed)
            self.note(trial, f"failed: {mistake}")
            raise
        except stored.library().TrialPruned:
            self.note(trial, "pruned: behind half of the others at this step")
            raise
        self.note(trial, f"validation map@r {value:.4f}")
        return value

    def note(self, trial: Any, text: str) -> None:
        self.tell({"event": "note", "text": f"trial {trial.number}: {text}"})

    def run(self, trial: Any, recipe: Recipe) -> float:
        pruned = stored.library().TrialPruned

        def report(fold: int, step: int, value: float) -> None:
            trial.report(value, fold * FOLD + step)
            if trial.should_prune():
                raise pruned

        def quietly(event: Mapping[str, Any]) -> None:
            if event["event"] in ("progress", "step", "health"):
                self.tell(event)

        folder = self.wanted.out / "trials"
        first = trial.user_attrs.get("continues", trial.number)
        with RunFolder(folder / f"{first:04d}").locked() as held:  # its first worker may live after all
            place = folder / (f"{first:04d}" if held else f"{trial.number:04d}")
            return judge(self.wanted.dataset, recipe, place, report, quietly, self.stop)


def _found(wanted: Search, study: Any) -> Found:
    optuna = stored.library()
    records = [
        {"number": trial.number, "state": trial.state.name.lower(),
         "value": trial.value if trial.state.name == "COMPLETE" else None,  # a pruned one has not seen all folds
         "params": {key: _plain(value) for key, value in trial.params.items()},
         "seconds": trial.duration.total_seconds() if trial.duration else None, **trial.user_attrs}
        for trial in study.trials
    ]  # fmt: skip
    complete = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
    check(bool(complete), "no trial was completed, so none is the best: give more --trials")
    best = max(complete, key=lambda trial: trial.value)
    said = draw(wanted.ranges, wanted.base, optuna.trial.FixedTrial(best.params))
    recipe = of_tree(overridden(wanted.base, said))
    words = f"The best of {len(complete)} complete trials: validation map@r {best.value:.4f} (trial {best.number})\n"
    (wanted.out / "best.toml").write_text(to_toml(recipe, words + header()), encoding="utf-8")
    return Found(records, records[best.number], recipe)


def _plain(value: Any) -> Any:
    """A choice is kept as JSON, whatever it is."""
    return json.loads(value) if isinstance(value, str) else value
