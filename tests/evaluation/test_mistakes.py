"""One clear line for every way to be wrong."""

import numpy as np
import pytest
import torch

from lookalike.errors import UserError
from lookalike.evaluation import compare, evaluate
from lookalike.evaluation.names import read

GOOD = np.random.default_rng(0).standard_normal((4, 3)).astype("f")
LABELS = [0, 0, 1, 1]


def holed(value, row=2):
    vectors = GOOD.copy()
    vectors[row, 1] = value
    return vectors


@pytest.mark.plain
@pytest.mark.parametrize(
    ("vectors", "labels", "settings", "message"),
    [
        (holed(np.nan), LABELS, {}, "NaN or infinite values .first in row 2"),
        (holed(np.inf), LABELS, {}, "NaN or infinite"),
        (holed(np.nan, row=0), LABELS, {}, "first in row 0"),
        (GOOD[:0], [], {}, "are empty"),
        (GOOD[:, :0], LABELS, {}, "are empty"),
        (GOOD[0], LABELS, {}, "must be a matrix n × d"),
        (GOOD.astype(int), LABELS, {}, "must be floating point"),
        (GOOD.tolist(), LABELS, {}, "must be a torch tensor or numpy array, not list"),
        (torch.tensor(GOOD).to_sparse(), LABELS, {}, "must be a dense tensor: call .to_dense"),
        (GOOD, LABELS[:3], {}, "3 labels for 4 embeddings"),
        (GOOD, "abcd", {}, "not one string"),
        (GOOD, 7, {}, "one value per row"),
        (GOOD, [{0: 1}] * 4, {}, "hashable"),
        (GOOD, [[[0]], [[0]], [[1]], [[1]]], {}, "hashable"),
        (GOOD, np.zeros((4, 1)), {}, "must be a vector"),
        (GOOD[:1], [0], {}, "one embedding alone"),
        (GOOD, [0, 1, 2, 3], {}, "no class has two samples"),
        (GOOD, LABELS, {"gallery": GOOD}, "both gallery and gallery_labels"),
        (GOOD, LABELS, {"gallery": GOOD[:, :2], "gallery_labels": LABELS}, "2 dimensions, the embeddings 3"),
        (GOOD, LABELS, {"gallery": GOOD, "gallery_labels": [5, 6, 7, 8]}, "among gallery_labels"),
        (GOOD, LABELS, {"metrics": "recal@1"}, "did you mean 'recall@K'"),
        (GOOD, LABELS, {"metrics": "recall@0"}, "K must be at least 1"),
        (GOOD, LABELS, {"metrics": "recall@1.5"}, "whole number"),
        (GOOD, LABELS, {"metrics": "tar@2"}, "between 0 and 1"),
        (GOOD, LABELS, {"metrics": []}, "metrics is empty"),
        (GOOD, LABELS, {"ties": "lucky"}, "unknown ties 'lucky'"),
        (GOOD, LABELS, {"normalise": "sphare"}, "did you mean 'sphere'"),
        (GOOD, LABELS, {"tie_tolerance": -1.0}, "tie_tolerance"),
        (GOOD, LABELS, {"categories": [1]}, "1 categories for 4"),
        (GOOD, LABELS, {"ignore": np.zeros((2, 2), bool)}, "queries × gallery are"),
        (GOOD, LABELS, {"ignore": np.zeros((4, 4))}, "must be boolean"),
        (GOOD, LABELS, {"ignore": [1, 2]}, "2 ignore groups for 4"),
        (GOOD, LABELS, {"ignore": [1, 1, 1, 1]}, "does ignore hide every one"),
        (GOOD, LABELS, {"gallery": GOOD, "gallery_labels": LABELS, "ignore": [1] * 4}, "query groups, gallery groups"),
    ],
)
def test_one_line_each(vectors, labels, settings, message):
    with pytest.raises(UserError, match=message) as caught:
        evaluate(vectors, labels, **settings)
    assert "\n" not in str(caught.value)


def test_names():
    assert read("recall@1,10 map@r,nmi").ranking == ("recall@1", "recall@10", "map@r")
    assert len(read("recall").ranking) == len(read(["recall@K"]).ranking) == 9
    assert read("tar@0.001").rates == (0.001,)
    assert len(read(None).ranking) == 45
    assert read(["recall@1", "recall@1"]).ranking == ("recall@1",)


def test_result_mistakes():
    result = evaluate(GOOD, LABELS, metrics="map nmi")
    with pytest.raises(UserError, match="'nmi' has no value per query"):
        result.interval("nmi")
    with pytest.raises(UserError, match="was not measured"):
        result.by_class("mrr")
    with pytest.raises(UserError, match="no categories"):
        result.by_category("map")
    with pytest.raises(UserError, match="level must lie between"):
        result.interval("map", level=95)


@pytest.mark.plain
def test_a_misspelt_unit_is_refused():
    result = evaluate(GOOD, LABELS, metrics="map")
    with pytest.raises(UserError, match="did you mean 'classes'"):
        result.interval("map", over="class")
    with pytest.raises(UserError, match="did you mean 'classes'"):
        compare({"one": result, "other": result}, ["map"], over="class")


def test_half_and_read_only_are_welcome():
    frozen = GOOD.copy()
    frozen.flags.writeable = False
    assert dict(evaluate(frozen, LABELS)) == dict(evaluate(torch.tensor(GOOD), torch.tensor(LABELS)))


@pytest.mark.plain  # the hook knows no other byte order and no long double
def test_arrays_of_any_layout_are_welcome():
    vectors, labels = np.random.default_rng(0).standard_normal((30, 4)), np.arange(30) // 3
    expected = dict(evaluate(vectors, labels))
    fortran, wide = np.asfortranarray(vectors), np.repeat(vectors, 2, axis=1)
    for form in (vectors.astype(">f8"), vectors.astype(np.longdouble), vectors[::-1][::-1], fortran, wide[:, ::2]):
        assert dict(evaluate(form, labels.astype(">i4"))) == expected
    backwards = evaluate(vectors[::-1, ::-1], labels[::-1])
    assert dict(backwards) == pytest.approx(expected, abs=1e-12)
    gallery = evaluate(vectors, labels, gallery=vectors[::-1].astype(">f4"), gallery_labels=labels[::-1])
    assert gallery["recall@1"] == 1.0
