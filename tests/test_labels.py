"""Labels as users have them: whatever holds them, the same classes come out."""

import numpy as np
import pytest
import torch

from lookalike.errors import UserError
from lookalike.labels import as_labels, joint_labels
from lookalike.targets import Pairs

LABELS = [7, -3, 7, 2**53 + 1]
FORMS = {
    "list": LABELS,
    "tuple": tuple(LABELS),
    "numpy": np.array(LABELS),
    "big-endian": np.array(LABELS, ">i8"),
    "read backwards": np.array(LABELS[::-1])[::-1],
    "objects": np.array(LABELS, object),
    "numpy scalars": list(np.array(LABELS)),
    "tensor scalars": list(torch.tensor(LABELS)),
}


@pytest.mark.parametrize("form", FORMS)
def test_integers_in_any_container_stay_what_they_are(form):
    assert as_labels(FORMS[form]).tolist() == LABELS
    assert as_labels(FORMS[form]).dtype == torch.int64
    assert joint_labels(FORMS[form])[0].tolist() == LABELS


def test_names_are_numbered_together():
    rows, columns = joint_labels(["owl", "hen", "owl"], np.array(["hen", "emu"]))
    assert rows.tolist() == [2, 1, 2]
    assert columns.tolist() == [1, 0]


def test_a_number_is_not_the_name_that_spells_it():
    rows, columns = joint_labels(torch.tensor([1, 2]), ["1", "2"])
    assert not set(rows.tolist()) & set(columns.tolist())
    assert len(set(joint_labels([1, "1", 2**70])[0].tolist())) == 3


def test_no_labels_are_no_labels():
    assert as_labels([]).tolist() == []
    assert as_labels(np.array([], np.int32)).dtype == torch.int64


def test_pairs_take_names_of_classes_and_of_images():
    pairs = Pairs.across(["owl"], ["owl", "owl", "hen"], ids=["a.jpg"], candidate_ids=["b.jpg", "a.jpg", "c.jpg"])
    assert pairs.positive.tolist() == [[True, False, False]]
    assert pairs.negative.tolist() == [[False, False, True]]
    assert torch.equal(Pairs.within(["owl", "hen", "owl"]).positive, Pairs.within(torch.tensor([1, 0, 1])).positive)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("abc", "labels must be a sequence with one value per row, not one string"),
        (None, "labels must be a sequence with one value per row, not NoneType"),
        ([1.0, 2.0], "labels must be integers or names, not 1.0"),
        ([True, False], "labels must be integers or names, not True"),
        (["owl", None], "labels must be integers or names, not None"),
        (np.array([[1], [2]]), r"labels must be a vector, not of shape \(2, 1\)"),
        ([["owl"], ["hen"]], "labels must be hashable values"),
    ],
)
def test_what_cannot_be_labels_is_refused_in_one_line(labels, message):
    with pytest.raises(UserError, match=message) as caught:
        joint_labels(labels)
    assert "\n" not in str(caught.value)


@pytest.mark.plain
def test_names_are_refused_where_a_batch_cannot_number_them():
    with pytest.raises(UserError, match=r"labels must be integers here, not str: .*numpy.unique"):
        as_labels(["owl", "hen"])
