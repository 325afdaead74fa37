"""Pictures of nothing show where a network puts strangers, when the similarity of hits does not."""

import json

import numpy as np
import pytest

from lookalike.search import Index
from lookalike.search.calibration.foreign import Familiar, discriminant, familiarity, pictures
from lookalike.search.calibration.thresholds import Calibration, calibrate
from lookalike.search.calibration.trials import among_themselves
from lookalike.search.items import Item

CLASSES, EACH, DIM = 40, 8, 32
FACTS = {"items": CLASSES * EACH, "generation": 1, "date": "2026-11-18", "source": "index"}


def cloud(generator, centres, aside):
    """Around centres that differ in all directions but the last, where all are `aside`."""
    number = len(centres) * EACH
    points = np.repeat(centres, EACH, axis=0) + 0.8 * generator.standard_normal((number, DIM))
    points[:, -1] = aside + 0.2 * generator.standard_normal(number)
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


def test_a_discriminant_is_one_inside_and_zero_outside():
    generator = np.random.default_rng(0)
    centres = generator.standard_normal((2, CLASSES, DIM))
    inside, outside = cloud(generator, centres[0], 1.0), cloud(generator, centres[1], -1.0)
    weights = discriminant(inside, outside)
    assert familiarity(inside, weights).mean() == pytest.approx(1)
    assert familiarity(outside, weights).mean() == pytest.approx(0, abs=1e-9)


def test_familiarity_is_that_of_classes_not_seen():
    """With more directions than vectors every class can be told apart by one that has seen it."""
    generator = np.random.default_rng(0)
    vectors, outside = generator.standard_normal((2, 60, 200)).astype(np.float32)
    found = Familiar.of(vectors, np.arange(60) // 6, outside)
    assert familiarity(vectors, found.weights).min() > 0.5
    assert abs(found.queries.mean()) < 0.5


def test_strangers_among_the_items_are_known_by_pictures_of_nothing(tmp_path):
    """Strangers lie between two classes each, as items of no class do: their hits do not tell."""
    generator = np.random.default_rng(1)
    own, nothing, new = generator.standard_normal((3, CLASSES, DIM))
    between = 0.7 * (own + np.roll(own, 1, axis=0))
    vectors, outside, strangers, others = (
        cloud(generator, centres, aside)
        for centres, aside in ((own, 1.0), (nothing, -1.0), (between, -1.0), (new, 1.0))
    )
    labels = [f"class {row // EACH:02d}" for row in range(len(vectors))]
    familiar = Familiar.of(vectors, np.arange(len(vectors)) // EACH, outside)
    index = Index.create(tmp_path / "index", dim=DIM)
    index.store.put([Item(f"{row:03d}", label=label) for row, label in enumerate(labels)], vectors)
    unknown = []
    for seen in (None, familiar):
        found = calibrate(among_themselves(vectors, labels), familiar=seen, **FACTS)
        assert Calibration.from_json(json.loads(json.dumps(found.as_json(), allow_nan=False))) == found
        index.store.documents.write("calibration", json.dumps(found.as_json()))
        answers = [index.search(one) for one in strangers[::4]]
        unknown.append(np.mean([answer.verdict == "unknown" for answer in answers if answer.chance < 0.5]))
        assert all(answer.match <= 0.5 for answer in answers if answer.verdict == "unknown")
        assert [index.search(one).verdict for one in vectors[::4]].count("unknown") <= 4
    index.close()
    assert unknown[0] < 0.6
    assert unknown[1] > 0.95
    assert (familiarity(others, familiar.weights) < found.models.foreign).mean() <= 0.08


def test_pictures_of_nothing_are_the_same_every_time():
    first, again = pictures(), pictures()
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert {picture.shape for picture in first} == {(96, 96, 3)}
    assert min(picture.std() for picture in first) > 1


def test_an_index_with_a_network_asks_it(tmp_path, model, photos):
    index = Index.create(tmp_path / "index", model)
    index.add(photos)
    found = index.calibrate(precision=0.8).calibration
    assert len(found.models.direction) == index.identity.dim + 1
    index.close()
