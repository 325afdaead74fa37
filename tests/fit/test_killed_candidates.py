"""kill -9 while candidates are judged, then --resume: the same model to the bit, and the same verdict."""

import json
import re
import signal

import pytest

from tests.cli.photos import folder
from tests.cli.processes import Death, Lookalike

SHORT = [
    "--no-audit",
    "--set",
    "train.steps=6",
    "--set",
    "train.validate_every=3",
    "--set",
    "sampler.batch_size=8",
    "--set",
    "sampler.per_class=2",
    "--set",
    "model.width=8",
]
PAGE = Death("lookalike.fit.prove", "write_report")
MOMENTS = {
    "first candidates are judged": Death("lookalike.fit.candidates", "untrained", after=True),
    "while it trains": Death("lookalike.training.loop:Loop", "advance", 4),
    "before the trained ones are judged": Death("lookalike.fit.candidates", "trained"),
    "before the choice": Death("lookalike.fit.best_model", "choose"),
    "while the model is saved": Death("lookalike.models.model_folder", "write"),
}


def outcome(run):
    """Everything but times."""
    text = re.sub(r"\d+ minutes|--minutes \d+", "some minutes", (run / "result.json").read_text())
    verdict = json.loads(text)["verdict"]
    rows = [{**row, "milliseconds_per_image": 0} for row in verdict["candidates"]]
    weights = (run / "model" / "weights.safetensors").read_bytes()
    return weights, (run / "model" / "model.json").read_bytes(), {**verdict, "candidates": rows}


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Enough classes for a validation that may choose."""
    return folder(tmp_path_factory.mktemp("many") / "photos", classes=30, each=4, noise=200)


@pytest.mark.slow
@pytest.mark.parametrize("minutes", [[], ["--minutes", "0.001"]])
def test_killed_and_resumed(many, tmp_path, minutes):
    words = [*SHORT, *minutes]
    whole = Lookalike(tmp_path)("fit", many, "--out", tmp_path / "whole", *words, death=PAGE)
    assert whole.code == -signal.SIGKILL, whole
    for name, death in MOMENTS.items():
        if minutes and "train" in name:
            continue
        run = tmp_path / name
        killed = Lookalike(tmp_path)("fit", many, "--out", run, *words, death=death)
        assert killed.code == -signal.SIGKILL, (name, killed)
        resumed = Lookalike(tmp_path)("fit", many, "--out", run, *words, "--resume", death=PAGE)
        assert resumed.code == -signal.SIGKILL, (name, resumed)
        assert outcome(run) == outcome(tmp_path / "whole"), name
