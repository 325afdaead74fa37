"""`lookalike fit` killed with SIGKILL at any moment and resumed: the weights are those of an uninterrupted run."""

import random
import signal
import time
from pathlib import Path

from tests.attacks.outcomes import Outcomes, right
from tests.cli.photos import folder
from tests.cli.processes import Death, Lookalike
from tests.fit.test_killed import MOMENTS, SHORT, logged_once, weights

COUNTED = (
    ("lookalike.training.loop:Loop", "advance", 12),
    ("lookalike.runs.checkpoint", "_write", 4),
    ("lookalike.runs.checkpoint", "write_text", 4),
    ("lookalike.files", "sync", 12),
    ("os", "fsync", 25),
    ("lookalike.files", "_replace_folder", 5),
    ("lookalike.runs.log:JsonLines", "__call__", 25),
)


def kills_hold(outcomes: Outcomes, first: int, count: int, place: Path) -> None:
    """Every kind of moment once, then random calls of what touches the disk, then random times of the clock."""
    photos = folder(place / "photos")
    program = Lookalike(place)
    whole = place / "whole"
    began = time.monotonic()
    right(program("fit", photos, "--out", whole, *SHORT).code == 0, "the run does not end")
    seconds = time.monotonic() - began
    named = list(MOMENTS.values())
    for number in outcomes.numbers(first, count):
        chance = random.Random(number)
        if number < len(named):
            death: Death | float = named[number]
        elif number % 2:
            owner, name, most = chance.choice(COUNTED)
            death = Death(owner, name, chance.randint(1, most), chance.random() < 0.5)
        else:
            death = chance.uniform(0.0, seconds)
        run = place / f"run {number}"
        outcomes.attempt(
            f"{number} ({death})", lambda run=run, death=death: _trial(program, photos, run, death, whole), 900
        )


def _trial(program: Lookalike, photos: Path, run: Path, death: Death | float, whole: Path) -> None:
    if isinstance(death, Death):
        ended = program("fit", photos, "--out", run, *SHORT, death=death)
    else:
        running = program.start("fit", photos, "--out", run, *SHORT)
        running.process.join(death)
        if running.process.is_alive():
            running.signal(signal.SIGKILL)
        ended = running.end()
    right(ended.code in (0, -signal.SIGKILL), f"it ended with {ended.code}: {ended.error[-300:]}")
    if ended.code:  # killed before it had a recipe, there is nothing to resume
        begun = ["--resume"] if (run / "recipe.toml").is_file() else []
        ended = program("fit", photos, "--out", run, *SHORT, *begun)
        right(ended.code == 0, f"resuming ended with {ended.code}: {ended.error[-300:]}")
    right(weights(run) == weights(whole), "the weights differ")
    right((run / "report.html").is_file(), "there is no report")
    logged_once(run)
