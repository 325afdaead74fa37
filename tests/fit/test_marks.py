"""What people marked joins a run: labels, negatives, copies, conflicts; and what cannot be used is refused."""

import csv
import shutil
from dataclasses import replace

import pytest

from lookalike.errors import UserError
from lookalike.fit import fit
from lookalike.models import Architecture, Model
from lookalike.search import Index
from lookalike.search.items import Mark
from tests.cli.photos import folder

SHORT = (
    "train.steps=2",
    "train.validate_every=2",
    "sampler.batch_size=8",
    "sampler.per_class=2",
    "train.deliver=trained",
)


@pytest.fixture
def marked(photos, tmp_path):
    """A table of new photos, copies of old ones, and photos with only ruled-out labels."""
    more = folder(tmp_path / "more", classes=16, each=3)
    copies = [shutil.copy(photos / f"class {number:02d}" / "1.png", tmp_path / f"{number}.png") for number in (3, 7)]
    rows = [
        (more / "class 12" / "0.png", "class 00", ""),
        (more / "class 13" / "0.png", "a new class", ""),
        (photos / "class 02" / "0.png", "class 02", ""),  # the very file
        (copies[0], "class 04", ""),  # a copy with another label
        (more / "class 11" / "0.png", "", "class 06"),
        (more / "class 15" / "0.png", "", "no such class"),
        (copies[1], "", "class 07"),  # a copy of what it is not
    ]
    with (tmp_path / "marked.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("path", "label", "not_label"), *rows])
    return tmp_path / "marked.csv"


def notes_of(photos, out, *overrides, marks):
    """The notes of a short run with marks."""
    events = []
    fit(photos, out, overrides=[*SHORT, f"data.marks={marks}", *overrides], full=False, tell=events.append)
    return [event["text"] for event in events if event["event"] == "note"]


def test_labels_negatives_copies_and_conflicts(photos, marked, tmp_path):
    notes = notes_of(photos, tmp_path / "run", marks=marked)
    joined = next(note for note in notes if "marked images join" in note)
    assert joined.startswith("2 marked images join 72 with their labels, 1 as negatives; 2 are copies")
    conflicts = [note for note in notes if note.startswith("conflict, left out: ")]
    assert [line.rpartition(" is ")[2] for line in conflicts] == ["class 03", "class 07"]
    assert "3.png is marked as class 04, its copy class 03/1.png" in conflicts[0]
    assert "7.png is marked as not class 07" in conflicts[1]


def test_a_loss_with_weights_per_class_learns_from_labels_alone(photos, marked, tmp_path):
    notes = notes_of(photos, tmp_path / "run", "loss.name=proxy_anchor", marks=marked)
    assert "proxy_anchor learns weights per class: 3 images are not used" in notes


def test_a_model_that_knows_all_classes_cannot_be_compared(photos, tmp_path):
    classes = tuple(path.name for path in photos.iterdir())
    model = Model.create(Architecture("conv4", {"channels": 3}, dim=8), seed=5)
    index = Index.create(tmp_path / "shop.index", replace(model, classes=classes))
    index.add(photos)
    with pytest.raises(UserError, match="nobody has marked anything in"):
        notes_of(photos, tmp_path / "none", marks=tmp_path / "shop.index")
    assert not (tmp_path / "none" / "recipe.toml").exists()
    query = (photos / "class 01" / "2.png").read_bytes()
    index.store.marks.add(Mark("q", None, next(iter(index.store.listed())).id, False), query)
    notes = notes_of(photos, tmp_path / "run", marks=tmp_path / "shop.index")
    assert "0 right, 1 wrong" in next(note for note in notes if note.startswith("marks of "))
    assert any("the two models cannot be compared, so the index stays as it is" in note for note in notes)
    assert Index.open(tmp_path / "shop.index").identity.generation == 1


def test_a_place_without_marks_is_refused(photos, tmp_path):
    with pytest.raises(UserError, match=r"there is no index and no table '.*nowhere.index'"):
        notes_of(photos, tmp_path / "run", marks=tmp_path / "nowhere.index")
