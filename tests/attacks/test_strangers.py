"""The attacks by pictures and connections: a few of each pass, and a library that is broken is found out."""

import pytest

from lookalike.data.images import decode
from tests.attacks import pictures, pipelines, writers
from tests.attacks.outcomes import Outcomes

pytestmark = pytest.mark.plain


def outcomes_of(part, count, place, first=0):
    outcomes = Outcomes(part.__name__)
    part(outcomes, first, count, place)
    return outcomes


def test_a_few_pictures_find_nothing(tmp_path):
    outcomes = outcomes_of(pictures.pictures_hold, 24, tmp_path)
    assert (outcomes.trials, outcomes.notes) == (24, [])
    assert outcomes.counts["answered"] > 5 < outcomes.counts["refused"]


def test_a_decoder_without_limits_is_found(tmp_path, monkeypatch):
    """The pixels are copied as float64 before they are converted, as they once were."""
    whole = decode._rgb

    def careless(image):
        image.load()
        return (decode.np.asarray(image, decode.np.float64) + 0.0).any(), whole(image)

    monkeypatch.setattr(decode, "_rgb", lambda image: careless(image)[1])
    assert outcomes_of(pictures.pictures_hold, 24, tmp_path).counts["wrong"] > 0


def test_a_few_pipelines_find_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOKALIKE_CACHE", str(tmp_path / "cache"))
    outcomes = outcomes_of(pipelines.pipelines_hold, 2, tmp_path)
    assert (outcomes.counts["answered"], outcomes.notes) == (4, [])


def test_writers_of_a_server_that_are_killed_lose_nothing(tmp_path):
    outcomes = outcomes_of(writers.postgres_writers_hold, 1, tmp_path)
    assert (outcomes.counts["answered"], outcomes.notes) == (1, [])
