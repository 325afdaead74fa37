"""Folders that version 0.2.0 wrote are read by this one: `tests/written_by_0_2_0` holds a small one of each kind."""

import json
import shutil
from pathlib import Path

import pytest

from lookalike.models import Model
from lookalike.search import Index

WRITTEN = Path(__file__).parent / "written_by_0_2_0"
ANSWERS = json.loads((WRITTEN / "answers.json").read_text())


def assert_answered_as_then(index: Index, photo: str) -> None:
    hits = index.search(str(WRITTEN / photo), k=5).hits
    assert [hit.id for hit in hits] == [id_ for id_, _ in ANSWERS[photo]]
    assert [hit.similarity for hit in hits] == pytest.approx([value for _, value in ANSWERS[photo]], abs=1e-5)


@pytest.mark.parametrize("photo", [*ANSWERS][::5])
def test_an_index_answers_as_it_did(photo: str, tmp_path: Path) -> None:
    shutil.copytree(WRITTEN / "index", tmp_path / "index")
    index = Index.open(tmp_path / "index")
    assert_answered_as_then(index, photo)
    assert index.thing is None  # photos answer
    index.close()


def test_an_index_takes_further_photos(tmp_path: Path) -> None:
    shutil.copytree(WRITTEN / "index", tmp_path / "index")
    shutil.copy(WRITTEN / "photos/class0/0.png", tmp_path / "again.png")
    index = Index.open(tmp_path / "index")
    index.add(tmp_path / "again.png")
    assert len(index) == len(ANSWERS) + 1
    index.close()


def test_a_model_embeds_as_it_did(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index", Model.load(WRITTEN / "model"))
    index.add(WRITTEN / "photos")
    photo = next(iter(ANSWERS))
    assert_answered_as_then(index, photo)
    index.close()
