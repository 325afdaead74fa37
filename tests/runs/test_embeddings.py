"""Embeddings on disk: rows come back in their order, queries and gallery apart, with all their labels."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lookalike.data import arrays
from lookalike.errors import UserError
from lookalike.features.shards import Shards
from lookalike.label_sets import LabelSets
from lookalike.runs.embeddings import (
    _of_shards,
    columns,
    label_sets,
    load_embeddings,
    read_embeddings,
    save_arrays,
    save_embeddings,
)

VECTORS = torch.arange(12.0).view(4, 3)
ROLES = ["query", "gallery", "gallery", "query"]


def birds(**more):
    return arrays(np.zeros((4, 8, 8, 3), np.uint8), ["owl", "hen", "owl", "hen"], **more)


def several(dataset):
    """The same images with several labels: the first class is grey and shy, the second grey."""
    return replace(dataset, sets=LabelSets.of([{"grey", "shy"}, {"grey"}]))


@pytest.mark.parametrize("roles", [None, ROLES])
def test_rows_come_back_in_the_order_of_the_dataset(tmp_path, roles):
    save_embeddings(tmp_path / "test.npz", VECTORS, birds(roles=roles))
    assert torch.equal(load_embeddings(tmp_path / "test.npz", birds(roles=roles)), VECTORS)


def test_queries_and_gallery_have_arrays_of_their_own():
    stored = columns(VECTORS, birds(roles=ROLES, categories=["night", "day", "night", ""]))
    assert stored["embeddings"].tolist() == VECTORS[[0, 3]].tolist()
    assert stored["gallery_embeddings"].tolist() == VECTORS[[1, 2]].tolist()
    assert (stored["labels"].tolist(), stored["gallery_labels"].tolist()) == (["owl", "hen"], ["hen", "owl"])
    assert (len(stored["paths"]), len(stored["gallery_paths"])) == (2, 2)
    assert stored["categories"].tolist() == ["night", ""]


@pytest.mark.parametrize("roles", [None, ROLES])
def test_several_labels_come_back_as_they_were(tmp_path, roles):
    dataset = several(birds(roles=roles))
    save_embeddings(tmp_path / "test.npz", VECTORS, dataset)
    queries, gallery = label_sets(read_embeddings(tmp_path / "test.npz"))
    rows = [[0, 3], [1, 2]] if roles else [[0, 1, 2, 3]]
    sets = [part for part in (queries, gallery) if part is not None]
    assert [part.numbers.tolist() for part in sets] == [dataset.supervision.numbers[some].tolist() for some in rows]
    assert [part.names for part in sets] == [dataset.sets.names] * len(rows)
    assert queries.opposed is None


def test_pairs_known_to_differ_come_back():
    dataset = several(birds())
    dataset = replace(dataset, sets=replace(dataset.sets, opposed=torch.tensor([[0, 1]])))
    queries, gallery = label_sets(columns(VECTORS, dataset))
    assert queries.opposed.tolist() == [[0, 1]]
    assert gallery is None


def test_one_label_per_image_needs_no_sets():
    assert label_sets(columns(VECTORS, birds())) == (None, None)


def test_files_that_lack_something_are_refused(tmp_path):
    whole = columns(VECTORS, birds(roles=ROLES))
    for missing, message in (
        ("labels", "has no array 'labels': it holds paths"),
        ("gallery_labels", "needs both gallery_embeddings and gallery_labels, or neither"),
    ):
        save_arrays(tmp_path / "part.npz", {name: array for name, array in whole.items() if name != missing})
        with pytest.raises(UserError, match=message):
            read_embeddings(tmp_path / "part.npz")
    save_embeddings(tmp_path / "test.npz", VECTORS, birds())
    with pytest.raises(UserError, match="has no gallery"):
        load_embeddings(tmp_path / "test.npz", birds(roles=ROLES))
    with pytest.raises(UserError, match="array 'paths'"):
        read_embeddings(tmp_path / "test.npz", known=("embeddings", "labels"))


def test_facts_are_kept_beside_the_arrays(tmp_path):
    save_arrays(tmp_path / "test.npz", columns(VECTORS, birds()), fingerprint="f1")
    assert read_embeddings(tmp_path / "test.npz")["fingerprint"] == "f1"


class Joined(Shards):
    """Shards whose rows are known."""

    def __init__(self, **arrays):
        self.arrays = {name: np.array(column) for name, column in arrays.items()}

    def joined(self):
        return self.arrays


def test_shards_are_read_as_one_file():
    rows = {"embeddings": [[1.0], [2.0], [3.0]], "labels": ["a", "b", "c"], "ids": [7, 8, 9]}
    plain = _of_shards(Joined(**rows))
    assert {name: column.tolist() for name, column in plain.items()} == {
        "embeddings": [[1.0], [2.0], [3.0]],
        "labels": ["a", "b", "c"],
    }
    apart = _of_shards(Joined(**rows, categories=["x", "y", "x"], roles=["query", "gallery", "query"]))
    assert {name: column.tolist() for name, column in apart.items()} == {
        "embeddings": [[1.0], [3.0]],
        "labels": ["a", "c"],
        "categories": ["x", "x"],
        "gallery_embeddings": [[2.0]],
        "gallery_labels": ["b"],
    }
