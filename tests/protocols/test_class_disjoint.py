"""Train, validation and test: no class in two parts, no near duplicate on two sides, always the same by seed."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookalike.data import arrays
from lookalike.errors import UserError
from lookalike.protocols.class_disjoint import LEAST, parts, usable


def dataset(sizes, **columns):
    labels = [f"class {number:03d}" for number, size in enumerate(sizes) for _ in range(size)]
    pixels = np.zeros((len(labels), 4, 4), np.uint8)
    pixels[:, 0, 0], pixels[:, 0, 1] = np.arange(len(labels)) % 256, np.arange(len(labels)) // 256
    return arrays(pixels, labels, **columns)


def present(part):
    """Names of the classes, and numbers of the images (which are written into their first pixels)."""
    if part is None:
        return set(), set()
    rows = [part.images.open(row).decode()[0, 0, :2].tolist() for row in range(len(part))]
    names = {part.label_names[label] for label in part.labels.tolist()}
    return names, {low + 256 * high for low, high in rows}


sizes = st.lists(st.integers(1, 5), min_size=1, max_size=24)
shares = st.floats(0.05, 0.95)


@given(sizes, shares, st.sampled_from([0.0, 0.1, 0.3]), st.integers(0, 5))
def test_no_class_is_in_two_parts_and_no_image_is_lost(sizes, test, validation, seed):
    data = dataset(sizes)
    if usable(data) < 2 * LEAST:
        with pytest.raises(UserError, match=r"^[^\n]*: add classes$"):
            parts(data, test, validation, seed)
        return
    try:
        divided = parts(data, test, validation, seed)
    except UserError:
        assert min(sizes) < 2  # classes of one image were drawn, and too few others are left on one side
        return
    contents = [present(part) for part in divided[:3]]
    names, images = ([name for each in contents for name in each[place]] for place in (0, 1))
    assert len(names) == len(set(names))
    assert len(images) == len(set(images))
    if divided.validation is not None or validation == 0:
        assert len(names) == len(sizes)
        assert len(images) == sum(sizes)
    assert usable(divided.train) >= LEAST
    assert usable(divided.test) >= LEAST
    assert divided.validation is None or usable(divided.validation) >= LEAST
    assert divided.train.labels.unique().tolist() == list(range(divided.train.classes))  # dense
    again = parts(data, test, validation, seed)
    assert [present(part) for part in again[:3]] == contents


@given(st.integers(4, 40), shares)
def test_the_share_of_test_classes_is_kept(classes, share):
    divided = parts(dataset([2] * classes), share, 0.0)
    count = min(max(LEAST, round(share * classes)), classes - LEAST)
    assert divided.test.present == count
    assert divided.train.present == classes - count
    assert divided.validation is None


def test_other_seeds_draw_other_classes():
    data = dataset([2] * 30)
    assert len({frozenset(present(parts(data, 0.5, 0.1, seed).test)[0]) for seed in range(5)}) == 5


@given(st.integers(4, 14), st.integers(4, 14), st.sampled_from([0.0, 0.2]), st.integers(0, 3))
def test_splits_that_the_data_have_are_respected(train, test, validation, seed):
    splits = [["train", "test"][number >= train] for number in range(train + test) for _ in range(3)]
    divided = parts(dataset([3] * (train + test), splits=splits), 0.9, validation, seed)
    first = {f"class {number:03d}" for number in range(train)}
    assert present(divided.train)[0] | present(divided.validation)[0] == first
    assert len(present(divided.test)[0]) == test
    assert not present(divided.test)[0] & first


def test_official_validation_classes_are_kept():
    splits = [name for name, count in (("train", 4), ("validation", 3), ("test", 3)) for _ in range(2 * count)]
    divided = parts(dataset([2] * 10, splits=splits), 0.5, 0.5)
    assert [part.present for part in divided[:3]] == [4, 3, 3]


@given(st.lists(st.integers(-1, 6), min_size=40, max_size=40), st.integers(0, 3))
def test_near_duplicates_never_straddle(groups, seed):
    data = dataset([2] * 20)
    data = type(data)(**{**data.__dict__, "groups": torch.tensor(groups)})
    try:
        divided = parts(data, 0.4, 0.2, seed)
    except UserError:
        return  # too few blocks of classes
    sides = {}
    for place, part in enumerate(divided[:3]):
        for group in [] if part is None else part.groups.tolist():
            if group >= 0:
                sides.setdefault(group, set()).add(place)
    assert all(len(places) == 1 for places in sides.values())


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([], "only 0 classes have two or more images"),
        ([5], "only 1 classes have two or more images"),
        ([5, 5], "only 2 classes have two or more images"),
        ([5, 5, 5], "only 3 classes have two or more images"),
        ([5, 5, 1, 1, 1, 1], "only 2 classes have two or more images"),
    ],
)
def test_too_few_classes_are_one_clear_line(sizes, message):
    with pytest.raises(UserError, match=message) as raised:
        parts(dataset(sizes), 0.5, 0.1) if sizes else parts(dataset([2]).subset([]), 0.5, 0.1)
    assert "needs at least 4: add classes" in str(raised.value)


@pytest.mark.parametrize(
    ("classes", "expected"), [(4, [2, None, 2]), (5, [3, None, 2]), (6, [3, None, 3]), (8, [2, 2, 4])]
)
def test_small_numbers_of_classes(classes, expected):
    divided = parts(dataset([2] * classes), 0.5, 0.1)
    assert [None if part is None else part.present for part in divided[:3]] == expected


def test_found_groups_train_and_do_not_judge():
    """Eight classes of given labels, two found photos in each, and two new groups; one found photo is a copy."""
    names = [f"class {number}" for number in range(8) for _ in range(5)] + ["group"] * 3 + ["other"] * 3
    origins = torch.tensor([0 if row % 5 > 2 else -1 for row in range(40)] + [0] * 6)
    pixels = np.arange(46, dtype=np.uint8)[:, None, None].repeat(4, 1).repeat(4, 2)
    whole = replace(arrays(pixels, names), origins=origins)
    for seed in range(4):
        divided = parts(whole, 0.5, 0.34, seed)
        assert divided.validation is not None
        for part in (divided.test, divided.validation):
            assert not part.of_origin("found").any()
            assert (part.label_sizes()[part.labels] == 3).all()
        assert {"group", "other"} < set(divided.train.label_names)
        assert len(divided.train) == 5 * (divided.train.classes - 2) + 6
        held = int(torch.nonzero(whole.labels == divided.test.labels[0])[0])
        copied = torch.full((46,), -1)
        copied[[held, 40]] = 0  # a photo of the group is a copy of one that tests
        again = parts(replace(whole, groups=copied), 0.5, 0.34, seed)
        tested = whole.label_names[whole.labels[held]] in {again.test.label_names[label] for label in again.test.labels}
        assert again.train.label_sizes()[again.train.label_id("group")] == (2 if tested else 3)


def test_where_too_few_labels_are_given_groups_judge():
    names = [f"class {number}" for number in range(7) for _ in range(3)] + [f"group {row // 3}" for row in range(9)]
    whole = replace(arrays(np.zeros((30, 4, 4), np.uint8), names), origins=torch.tensor([-1] * 21 + [0] * 9))
    divided = parts(whole, 0.5, 0.0)
    assert len(divided.train) + len(divided.test) == 30
    assert not divided.judged
