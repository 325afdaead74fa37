"""The attacks themselves: a few of each pass, and a library that is broken is found out. Indexes: test_indexes.py."""

import pytest
import torch

from lookalike import evaluate, losses, miners
from lookalike.data.images import decode
from lookalike.discover import journal
from tests.attacks import batches, pictures, pipelines, reviews, sets, writers
from tests.attacks.outcomes import Outcomes

pytestmark = pytest.mark.plain  # they give what no annotation allows


def outcomes_of(part, count, place, first=0):
    outcomes = Outcomes(part.__name__)
    part(outcomes, first, count, place)
    return outcomes


@pytest.mark.parametrize(
    "part", [batches.losses_hold, batches.miners_hold, sets.samplers_hold, sets.evaluate_hold], ids=lambda p: p.__name__
)
def test_a_few_batches_find_nothing(part, tmp_path):
    outcomes = outcomes_of(part, 150, tmp_path)
    assert (outcomes.trials, outcomes.notes) == (150, [])
    assert outcomes.counts["answered"] > 30


def test_a_few_pipelines_find_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOKALIKE_CACHE", str(tmp_path / "cache"))
    outcomes = outcomes_of(pipelines.pipelines_hold, 2, tmp_path)
    assert (outcomes.counts["answered"], outcomes.notes) == (4, [])


@pytest.mark.parametrize(
    ("part", "count", "least"),
    [(pictures.pictures_hold, 24, 5), (reviews.reviews_hold, 3, -1)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_few_trials_are_answered_or_refused(part, count, least, tmp_path):
    """Which reviews are refused depends on when their speakers die."""
    outcomes = outcomes_of(part, count, tmp_path)
    assert (outcomes.trials, outcomes.notes) == (count, [])
    assert outcomes.counts["answered"] + outcomes.counts["refused"] == count
    assert outcomes.counts["answered"] > least < outcomes.counts["refused"]


def test_writers_of_a_server_that_are_killed_lose_nothing(tmp_path):
    outcomes = outcomes_of(writers.postgres_writers_hold, 1, tmp_path)
    assert (outcomes.counts["answered"], outcomes.notes) == (1, [])


def test_a_loss_that_hides_nan_is_found(monkeypatch, tmp_path):
    whole = losses.Contrastive.forward
    monkeypatch.setattr(losses.Contrastive, "forward", lambda *given, **more: whole(*given, **more).nan_to_num())
    outcomes = outcomes_of(batches.losses_hold, 1000, tmp_path, losses.names().index("contrastive"))
    assert outcomes.counts["silent NaN"] > 0
    assert outcomes.findings == outcomes.counts["silent NaN"]


def test_wrong_ranks_are_found(monkeypatch, tmp_path):
    monkeypatch.setattr(sets, "evaluate", lambda vectors, labels, **more: evaluate(-abs(vectors), labels, **more))
    assert outcomes_of(sets.evaluate_hold, 60, tmp_path).counts["wrong"] > 5


def test_raw_errors_are_found(monkeypatch, tmp_path):
    def broken(*_):
        raise RuntimeError("no such index")

    monkeypatch.setattr(miners.Hard, "__call__", broken)
    assert outcomes_of(batches.miners_hold, 21, tmp_path).counts["raw exception"] == 3


def test_half_a_line_that_counts_is_found(tmp_path, monkeypatch):
    def careless(place):
        return [journal.json.loads(line) for line in place.read_bytes().splitlines() if line.endswith(b"}")]

    monkeypatch.setattr(journal, "entries", careless)
    assert outcomes_of(reviews.reviews_hold, 3, tmp_path).findings > 0


def test_a_decoder_without_limits_is_found(tmp_path, monkeypatch):
    """The pixels are copied as float64 before they are converted, as they once were."""
    whole = decode._rgb

    def careless(image):
        image.load()
        return (decode.np.asarray(image, decode.np.float64) + 0.0).any(), whole(image)

    monkeypatch.setattr(decode, "_rgb", lambda image: careless(image)[1])
    assert outcomes_of(pictures.pictures_hold, 4, tmp_path).counts["wrong"] > 0


def test_time_ends_a_part(tmp_path):
    outcomes = Outcomes("losses", minutes=0.0)
    batches.losses_hold(outcomes, 0, 1000, tmp_path)
    assert outcomes.trials < 3


def test_trials_are_repeated_by_their_numbers():
    first, again = (batches.Draw(7).rows(4, 3, torch.float32) for _ in range(2))
    assert torch.equal(first, again)
