"""Nothing is done twice: one network, one split, one ranking of the test images, one decoding of each image."""

from collections import Counter
from importlib import import_module

import pytest

from lookalike import data
from lookalike.data.images.decode import Encoded
from lookalike.fit import fit, stages
from lookalike.models import Model
from tests.cli.photos import folder

RECIPE = {
    "data": {"validation": 0.2},
    "images": {"preset": "glyphs", "size": 16, "short_side": 16},
    "model": {"backbone": "conv4", "width": 4, "dim": 4},
    "loss": {"name": "triplet"},
    "sampler": {"name": "class_balanced", "batch_size": 4, "per_class": 2},
    "train": {"steps": 3, "validate_every": 3},
}


@pytest.fixture
def calls(monkeypatch):
    """How often each of these really ran; rankings by their number of queries."""
    counts = Counter()

    def count(owner, name, key=lambda *_: None):
        real = getattr(owner, name)

        def counted(*arguments, **settings):
            counts[key(*arguments) or name] += 1
            return real(*arguments, **settings)

        static = isinstance(vars(owner)[name], staticmethod)
        monkeypatch.setattr(owner, name, staticmethod(counted) if static else counted)

    count(Model, "create")
    count(stages, "split")
    count(Encoded, "decode")
    count(data, "audit")
    count(
        import_module("lookalike.evaluation.evaluate"),
        "measure_ranking",
        lambda _1, _2, _3, sets, *_: len(sets.queries),
    )
    return counts


@pytest.mark.usefixtures("own_cache")
def test_everything_is_done_once(tmp_path, calls):
    source = folder(tmp_path / "photos")
    run = fit(source, tmp_path / "run", recipe=RECIPE)
    sizes = run.content["data"]
    assert sizes["test_images"] != sizes["validation_images"]
    assert calls == {
        "create": 1,
        "split": 1,
        "audit": 1,
        "decode": len(list(source.rglob("*.png"))),
        sizes["validation_images"]: 2,  # before the first step, and after the last
        sizes["test_images"]: 3,  # the model and two baselines; the report ranks nothing again
    }
