"""The minutes that `advise` names before a run are those that `fit` names when it has had too few."""

import socket
import time

import pytest

from lookalike import data
from lookalike.fit.advise import BEFORE, advise
from lookalike.fit.choose import choose
from lookalike.fit.defaults import fit_batches
from lookalike.fit.plan import REPORT, NotEnoughTimeError, RunClock, plan
from lookalike.recipe import build, protocol
from tests.cli.conftest import SHORT
from tests.cli.processes import Lookalike

RATE = 2.0  # images per second


@pytest.fixture
def characters(monkeypatch):
    """Some glyphs, on a slow machine."""
    monkeypatch.setattr("lookalike.fit.advise.embedding_rate", lambda *_: RATE)
    monkeypatch.setattr("lookalike.fit.plan.embedding_rate", lambda *_: RATE)
    monkeypatch.setattr("lookalike.fit.plan.contention", lambda: 1.0)
    glyphs = data.load("glyphs")
    return glyphs.subset(glyphs.labels % 40 == 0).dense()


def test_advise_and_fit_name_the_same(characters):
    advised = next(line for line in advise(characters) if line.startswith("minutes"))
    dataset, recipe, model = choose(characters, None, ["train.minutes=1"])
    parts = protocol.parts(recipe, dataset)
    recipe = fit_batches(recipe, parts.train)
    loop = build.loop(recipe, model, parts.train)
    before = BEFORE * len(dataset) / RATE

    def needed(passed, choosing=None):
        clock = RunClock(time.monotonic() - passed, REPORT, choosing=choosing)
        with pytest.raises(NotEnoughTimeError) as refusal:
            plan(recipe, loop, model, parts, clock)
        return refusal.value.needed

    assert advised.split()[1] == f"{needed(before)}:"
    assert needed(before, 0.0) > 1.2 * needed(before)  # choosing takes a fifth of those minutes, too,
    assert needed(before + 500, 500.0) == needed(before, 0.0)  # whatever it has taken of these


def test_two_processes_plan_by_the_clock_of_the_first(photos, cache, tmp_path):
    """What it measures there involves no other: they wait for its plan."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ("fit", photos, "--out", tmp_path / "run", "--no-audit", "--minutes", 5, *SHORT)
    running = []
    for rank in range(2):
        (tmp_path / str(rank)).mkdir()
        process = Lookalike(tmp_path / str(rank), cache)
        process.environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
        process.environment |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        running.append(process.start(*words))
    try:
        ended = [each.end(timeout=100) for each in running]
    finally:
        for each in running:
            each.process.kill()
    assert [each.code for each in ended] == [0, 0], ended
