"""Train, validation and test images under each protocol, and what is refused."""

import numpy as np
import pytest
import torch

from lookalike.data import arrays
from lookalike.data.formats import vehicle_id
from lookalike.errors import UserError
from lookalike.evaluation import evaluate
from lookalike.evaluation.query_draw import one_per_class
from lookalike.protocols import cross_validation, query_gallery
from lookalike.protocols import vehicle_id as lists
from tests.recipe.layouts import EACH, LISTS, TRAIN, Album, vehicles


def images(count: int) -> torch.Tensor:
    return torch.zeros(count, 4, 4, dtype=torch.uint8)


def test_folds_are_contiguous_ranges_of_the_train_classes_and_the_first_validates_on_the_last():
    dataset = arrays(images(48), torch.arange(48) // 2)
    folds = [cross_validation.parts(dataset, 4, fold) for fold in (1, 2, 3, 4)]
    held = [sorted(set(part.validation.labels.tolist())) for part in folds]
    assert held == [[9, 10, 11], [6, 7, 8], [3, 4, 5], [0, 1, 2]]
    for part, validating in zip(folds, held, strict=True):
        names = {int(part.train.label_names[label]) for label in part.train.labels.tolist()}
        assert names == set(range(12)) - set(validating)
        assert sorted(set(part.test.labels.tolist())) == list(range(12, 24))


def test_folds_without_enough_classes_are_refused():
    with pytest.raises(UserError, match="fewer than 2"):
        cross_validation.parts(arrays(images(24), torch.arange(24) // 2), 4, 2)
    with pytest.raises(UserError, match="1 to 4"):
        cross_validation.parts(arrays(images(48), torch.arange(48) // 2), 4, 5)


def test_side_by_side_is_normalised_before_and_after():
    one, two = torch.tensor([[3.0, 4.0]]), torch.tensor([[0.3, 0.0]])
    joint = cross_validation.side_by_side([one, two], "ball")
    joined = np.array([0.6, 0.8, 0.3, 0.0])
    assert joint.numpy()[0] == pytest.approx(joined / np.linalg.norm(joined), abs=1e-6)


def test_query_gallery_needs_roles_with_classes_in_common():
    labels = torch.arange(24) // 4
    splits = ["train"] * 12 + ["test"] * 12
    with pytest.raises(UserError, match="which images are queries"):
        query_gallery.parts(arrays(images(24), labels, splits=splits), 0.5, 0.0)
    roles = [""] * 12 + ["query", "query", "gallery", "gallery"] * 3
    parts = query_gallery.parts(arrays(images(24), labels, splits=splits, roles=roles), 0.5, 0.0)
    assert (parts.test.roles == 0).sum() == (parts.test.roles == 1).sum() == 6
    apart = [""] * 12 + ["query"] * 4 + ["gallery"] * 8
    with pytest.raises(UserError, match="no class has both"):
        query_gallery.parts(arrays(images(24), labels, splits=splits, roles=apart), 0.5, 0.0)


def test_vehicle_id_has_three_lists(tmp_path, monkeypatch):
    monkeypatch.setattr(vehicle_id, "VEHICLES", LISTS)
    monkeypatch.setattr(vehicle_id, "TRAIN", [(TRAIN, TRAIN * EACH)])
    parts = lists.parts(vehicles(Album(tmp_path)), 0.5, 0.0)
    assert parts.test.present == 2
    assert [(name, part.present) for name, part in parts.others] == [
        ("medium list, 3 vehicles", 3),
        ("large list, 4 vehicles", 4),
    ]
    with pytest.raises(UserError, match="works on PKU VehicleID only"):
        lists.parts(arrays(images(24), torch.arange(24) // 2), 0.5, 0.0)


def test_the_classic_gallery_is_the_mean_of_random_ones():
    labels = torch.arange(30) // 5
    vectors = torch.randn(30, 4, generator=torch.Generator().manual_seed(1)) + labels[:, None]
    dataset = arrays(images(30), labels.tolist())
    result_of_repeats = lists.judge_repeats("x", "model", vectors, dataset, "none", ["recall@1"], repeats=3).result
    each, values = [], np.zeros((3, 30))
    for repeat in range(3):
        queries, gallery = one_per_class(labels.tolist(), seed=repeat)
        result = evaluate(
            vectors[queries],
            labels[queries],
            gallery=vectors[gallery],
            gallery_labels=labels[gallery],
            metrics=["recall@1"],
            normalise="none",
        )
        each.append(result["recall@1"])
        values[repeat] = np.nan
        values[repeat, queries] = result.per_query["recall@1"]
    assert result_of_repeats["recall@1"] == pytest.approx(np.mean(each))
    was_query = ~np.isnan(values).all(0)
    assert result_of_repeats.per_query["recall@1"][was_query] == pytest.approx(np.nanmean(values[:, was_query], axis=0))
