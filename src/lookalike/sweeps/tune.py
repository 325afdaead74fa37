"""A search for settings: Tree-structured Parzen Estimator (Bergstra et al., NeurIPS 2011) with median pruning, by
optuna.

Any number of processes may work on one search: each takes the next trial, all learn from all results. A search that was
interrupted continues with the trial it was at.
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
from lookalike.files import make_folder, write_text
from lookalike.fit.choose import check_possible, load
from lookalike.fit.result_content import header
from lookalike.recipe import Recipe, of_tree, overridden, to_toml, tree
from lookalike.runs.folder import RunFolder
from lookalike.runs.log import Watcher
from lookalike.sweeps import storage
from lookalike.sweeps.ranges import Corner, Range, draw, take
from lookalike.sweeps.trial import until_validated
from lookalike.training import StoppedError
from lookalike.training.train import Stop

FAIR = ("protocol.name=cross_validation", "protocol.select=validation", "protocol.seeds=1", "train.select=map@r")
FOLD = 10**7  # more steps than a fold has: trials are compared at the same step of the same fold
HOPELESS = 3  # impossible trials in a row


@dataclass(frozen=True)
class Search:
    """What is searched, on which data, and where its trials are kept.

    base: the recipe's tables.
    ranges: what may vary.
    dataset: the images.
    out: the folder of the search.
    name: by which workers find it in the storage.
    url: the database that keeps the trials.
    shared: whether several machines work on it.
    seed: decides which points are tried.
    heartbeat: seconds between two signs of life of a worker; after three without one its trial is taken over.
    """

    base: Mapping[str, Any]
    ranges: Sequence[Range]
    dataset: Dataset
    out: Path
    name: str
    url: str
    shared: bool
    seed: int = 0
    heartbeat: int = 30

    @staticmethod
    def read(
        path: str | Path,
        out: Path,
        source: str | None = None,
        overrides: Sequence[str] = (),
        url: str | None = None,
        **more: Any,
    ) -> "Search":
        """The search in the recipe `path` with a [tune] table, checked before anything long begins.

        `url`: of a database that machines share; None: a file in `out`. Further: `name`, `seed` and `heartbeat`.
        """
        base, ranges = take(tree(path))
        base = overridden(base, overrides)
        of_tree(base)
        dataset, where = load(source, base)
        base = overridden(base, [f"data.source={json.dumps(where)}"])
        name = more.pop("name", None) or Path(path).stem
        search = Search(base, ranges, dataset, out, name, storage.address(url, out), url is not None, **more)
        recipe = search.recipe(draw(ranges, base, Corner()))
        check_possible(recipe, dataset)
        return search

    def recipe(self, overrides: Sequence[str]) -> Recipe:
        """The recipe of a trial: one point of the ranges (`overrides`), under the fair protocol."""
        return of_tree(overridden(self.base, [*overrides, *FAIR]))

    def text(self) -> str:
        """The whole search in words: workers that share one must agree on them."""
        return to_toml(of_tree(self.base)) + "\n".join(map(str, self.ranges))


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    trials: each with number, state, value, params and seconds.
    best: the trial with the highest value, of those that were completed.
    recipe: that of the best, under the protocol of the search's own recipe.
    """

    trials: list[dict[str, Any]]
    best: dict[str, Any]
    recipe: Recipe


def search(task: Search, trials: int, tell: Watcher, stop: Stop = lambda: False) -> SearchResult:
    """Work on the search `task` until `trials` trials are finished, by all workers together; write OUT/best.toml."""
    check(trials > 0, f"--trials is at least 1, not {trials}")
    make_folder(task.out / "trials")
    with storage.opened(task.url, task.heartbeat) as database:
        study = _study(task, database)
        _work(task, study, trials, tell, stop)
        return _result(task, study)


def _study(task: Search, database: Any) -> Any:
    optuna = storage.library()
    study = optuna.create_study(
        storage=database,
        study_name=task.name,
        direction="maximize",
        load_if_exists=True,
        # who is slow at first may be best in the end, as CCP is: no trial is pruned before its first fold is through
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=FOLD),
    )
    text = task.text()
    known = study.user_attrs.get("search", text)
    check(known == text, f"the search '{task.name}' is about another recipe: choose another --name or --out")
    study.set_user_attr("search", text)
    return study


def _work(task: Search, study: Any, trials: int, tell: Watcher, stop: Stop) -> None:
    optuna = storage.library()
    failures = 0
    while _finished(study) < trials:
        study.sampler = optuna.samplers.TPESampler(seed=_seed(task, len(study.trials)), group=True, multivariate=True)
        point = _Point(task, study, trials, tell, stop)
        study.optimize(point, n_trials=1, catch=(UserError,))
        failures = failures + 1 if point.failed else 0
        check(failures < HOPELESS, f"{failures} trials in a row could not run, the last because {point.failed}")


def _seed(task: Search, count: int) -> int:
    """Another one for every trial; machines that share a search must not draw the same points."""
    who = f"{platform.node()} {os.getpid()}" if task.shared else ""
    return int.from_bytes(blake2b(f"{task.seed} {count} {who}".encode(), digest_size=4).digest(), "big")


def _finished(study: Any) -> int:
    return sum(trial.state.name in ("COMPLETE", "PRUNED") for trial in study.trials)


class _Point:
    """One trial, as optuna calls it."""

    def __init__(self, task: Search, study: Any, trials: int, tell: Watcher, stop: Stop) -> None:
        self.task, self.study, self.trials, self.tell, self.stop = task, study, trials, tell, stop
        self.failed = ""

    def __call__(self, trial: Any) -> float:
        overrides = draw(self.task.ranges, self.task.base, trial)
        name = f"trial {trial.number} ({_finished(self.study)} of {self.trials} done): {', '.join(overrides)}"
        self.tell({"event": "stage", "name": name})
        try:
            value = self.run(trial, self.task.recipe(overrides))
        except StoppedError:
            storage.repeat(self.study, trial, trial.user_attrs.get("tries", 1))
            raise
        except UserError as mistake:
            self.failed = str(mistake)
            trial.set_user_attr("why", self.failed)
            self.note(trial, f"failed: {mistake}")
            raise
        except storage.library().TrialPruned:
            self.note(trial, "pruned: behind half of the others at this step")
            raise
        self.note(trial, f"validation map@r {value:.4f}")
        return value

    def note(self, trial: Any, text: str) -> None:
        self.tell({"event": "note", "text": f"trial {trial.number}: {text}"})

    def run(self, trial: Any, recipe: Recipe) -> float:
        pruned = storage.library().TrialPruned

        def report(fold: int, step: int, value: float) -> None:
            trial.report(value, fold * FOLD + step)
            if trial.should_prune():
                raise pruned

        folder = self.task.out / "trials"
        first = trial.user_attrs.get("continues", trial.number)
        with RunFolder(folder / f"{first:04d}").locked() as held:  # the first worker may still be alive
            place = folder / (f"{first:04d}" if held else f"{trial.number:04d}")
            return until_validated(self.task.dataset, recipe, place, report, self.tell, self.stop)


def _result(task: Search, study: Any) -> SearchResult:
    optuna = storage.library()
    records = [
        {
            "number": trial.number,
            "state": trial.state.name.lower(),
            "value": trial.value if trial.state.name == "COMPLETE" else None,  # a pruned one has not seen all folds
            "params": {key: _plain(value) for key, value in trial.params.items()},
            "seconds": trial.duration.total_seconds() if trial.duration else None,
            **trial.user_attrs,
        }
        for trial in study.trials
    ]
    complete = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
    check(bool(complete), "no trial was completed, so none is the best: give more --trials")
    best = max(complete, key=lambda trial: trial.value)
    overrides = draw(task.ranges, task.base, optuna.trial.FixedTrial(best.params))
    recipe = of_tree(overridden(task.base, overrides))
    words = f"The best of {len(complete)} complete trials: validation map@r {best.value:.4f} (trial {best.number})\n"
    write_text(task.out / "best.toml", to_toml(recipe, words + header()))
    return SearchResult(records, records[best.number], recipe)


def _plain(value: Any) -> Any:
    """A choice is kept as JSON, whatever its type."""
    return json.loads(value) if isinstance(value, str) else value
