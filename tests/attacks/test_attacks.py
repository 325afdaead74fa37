"""The attacks themselves: a few of each pass, and a library that is broken is found out."""

import pytest
import torch

from lookalike import evaluate, losses, miners
from tests.attacks import batches, sets
from tests.attacks.outcomes import Outcomes

PARTS = {
    "losses": batches.losses_hold,
    "miners": batches.miners_hold,
    "samplers": sets.samplers_hold,
    "evaluate": sets.evaluate_hold,
}
pytestmark = pytest.mark.plain  # they give what no annotation allows


@pytest.mark.parametrize("part", PARTS)
def test_a_few_trials_find_nothing(part, tmp_path):
    outcomes = Outcomes(part)
    PARTS[part](outcomes, 0, 150, tmp_path)
    assert outcomes.trials == 150
    assert not outcomes.notes
    assert outcomes.counts["answered"] > 30


def test_a_loss_that_hides_nan_is_found(monkeypatch, tmp_path):
    whole = losses.Contrastive.forward
    monkeypatch.setattr(losses.Contrastive, "forward", lambda *given, **more: whole(*given, **more).nan_to_num())
    outcomes = Outcomes("losses")
    batches.losses_hold(outcomes, losses.names().index("contrastive"), 1000, tmp_path)
    assert outcomes.counts["silent NaN"] > 0
    assert outcomes.findings == outcomes.counts["silent NaN"]


def test_wrong_ranks_and_raw_errors_are_found(monkeypatch, tmp_path):
    monkeypatch.setattr(sets, "evaluate", lambda vectors, labels, **more: evaluate(-abs(vectors), labels, **more))
    outcomes = Outcomes("evaluate")
    sets.evaluate_hold(outcomes, 0, 60, tmp_path)
    assert outcomes.counts["wrong"] > 5

    def broken(*_):
        raise RuntimeError("no such index")

    monkeypatch.setattr(miners.Hard, "__call__", broken)
    outcomes = Outcomes("miners")
    batches.miners_hold(outcomes, 0, 21, tmp_path)
    assert outcomes.counts["raw exception"] == 3


def test_time_ends_a_part(tmp_path):
    outcomes = Outcomes("losses", minutes=0.0)
    batches.losses_hold(outcomes, 0, 1000, tmp_path)
    assert outcomes.trials < 3


def test_trials_are_repeated_by_their_numbers():
    first, again = (batches.Draw(7).rows(4, 3, torch.float32) for _ in range(2))
    assert torch.equal(first, again)
