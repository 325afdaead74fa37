"""The contract of a dataset: columns, subsets, numbers of classes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookalike import data
from lookalike.errors import UserError


def numbers(labels, **columns):
    stack = np.arange(len(labels), dtype=np.uint8)[:, None, None].repeat(4, 1).repeat(4, 2)
    return data.arrays(stack, labels, **columns)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.data())
def test_a_subset_keeps_rows_together_with_their_facts(labels, draw):
    whole = numbers(labels, categories=[label % 2 for label in labels])
    rows = draw.draw(st.lists(st.integers(0, len(labels) - 1)))
    part = whole.subset(torch.tensor(rows, dtype=torch.int64))
    assert part.labels.tolist() == [int(whole.labels[row]) for row in rows]
    assert part.categories.tolist() == [int(whole.categories[row]) for row in rows]
    assert [int(part.images.open(row).decode()[0, 0, 0]) for row in range(len(part))] == rows
    assert part.label_names == whole.label_names


def test_dense_renumbers_what_is_present():
    part = numbers(["a", "c", "b", "c"]).subset([1, 3]).dense()
    assert part.labels.tolist() == [0, 0]
    assert part.label_names == ("c",)
    assert numbers(["a", "c", "b"]).subset([2, 1]).dense().labels.tolist() == [0, 1]


def test_masks_splits_and_roles_select():
    whole = numbers([0, 0, 1, 1], splits=["train", "", "test", "test"], roles=["", None, "query", "gallery"])
    assert len(whole.where(split="test", role="query")) == 1
    assert whole.subset(whole.labels == 1).labels.tolist() == [1, 1]
    assert whole.splits.tolist() == [0, -1, 2, 2]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: numbers([0, 1]).where(split="train"), "has no split column"),
        (lambda: numbers([0], splits=["train"]).where(split="trian"), "unknown split 'trian': did you mean 'train'"),
        (lambda: numbers([0], splits=["trian"]), "unknown split 'trian'"),
        (lambda: data.arrays(np.zeros((3, 4, 4), np.uint8), [0, 1]), "3 images for 2 labels"),
        (lambda: data.arrays(np.zeros((2, 4, 4)), [0, 1]), "must be uint8"),
        (lambda: data.arrays(np.zeros((2, 3, 4, 3), np.uint8), [0, 1]), "images must be n × h × w × 3"),
        (lambda: data.arrays([np.zeros((2, 2, 4), np.uint8)], [0]), "image 0 is uint8 of shape"),
        (lambda: numbers([0, None]), "a label is empty"),
        (lambda: numbers(["owl"]).label_id("owk"), "did you mean 'owl'"),
        (lambda: data.build("folder", roof="x"), "unknown setting of folder 'roof': did you mean 'root'"),
        (lambda: data.build("cub200"), "dataset 'cub200' needs root"),
        (lambda: data.load("no/such/place"), "there is no folder or table"),
        (lambda: data.load("cub200"), "'cub200' must say where it is: write cub200=FOLDER"),
        (lambda: data.load("glyfs"), "unknown dataset 'glyfs': did you mean 'glyphs'"),
        (lambda: data.load("nothing.csv"), "there is no folder or table"),
    ],
)
def test_mistakes_are_one_line(act, message):
    with pytest.raises(UserError, match=message) as caught:
        act()
    assert "\n" not in str(caught.value)


def test_arrays_of_every_shape_read_as_three_channels():
    for stack in (
        np.zeros((2, 6, 5, 3), np.uint8),
        np.zeros((2, 3, 6, 5), np.uint8),
        np.zeros((2, 6, 5), np.uint8),
        np.zeros((2, 6, 5, 1), np.uint8),
        np.zeros((2, 1, 6, 5), np.uint8),
        torch.zeros(2, 3, 6, 5, dtype=torch.uint8),
        [np.zeros((6, 5, 3), np.uint8), np.zeros((6, 5), np.uint8)],
    ):
        dataset = data.arrays(stack, ["a", "b"])
        assert [tuple(dataset.images.open(row).decode().shape) for row in (0, 1)] == [(3, 6, 5)] * 2


def test_names_lists_every_member():
    assert {"glyphs", "folder", "table", "cub200", "cars196", "sop", "inshop", "vehicle_id", "omniglot"} <= set(
        data.names()
    )
