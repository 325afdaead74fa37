"""Every verb of search with an address in the place of a folder: the same words, the same answers."""

import json

import pytest

from lookalike.cli import index as cli_index
from lookalike.search import Index
from lookalike.search.items import Mark
from lookalike.search.model_copy import identity_of, model_content
from lookalike.search.stores import places
from tests.cli.processes import Lookalike
from tests.search.serve.client import Server
from tests.search.serve.conftest import encoded


@pytest.fixture
def lookalike(tmp_path):
    return Lookalike(tmp_path)


@pytest.fixture
def saved(tmp_path, model):
    model.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.slow
def test_the_verbs(lookalike, saved, photos, held_out, new_address, tmp_path):
    place, folder, query = new_address(), tmp_path / "shop.index", held_out / "figs" / "101.png"
    for out in (place, folder):
        made = lookalike("index", saved, photos, "--out", out)
        assert made.code == 0, made.error
        assert "36 added" in made.out
    answers = [lookalike("search", each, query, "--json").out for each in (place, folder)]
    assert json.loads(answers[0]) == json.loads(answers[1])
    status = json.loads(lookalike("status", place, "--check", "--compact", "--approximate", "--json").out)
    assert (status["items"], status["troubles"]) == (36, [])
    assert "recall@10 1.000" in status["answers"]
    assert lookalike("status", place, "--exact").code == 0
    calibrated = lookalike("calibrate", place, held_out, "--precision", 0.6)
    assert calibrated.code == 0, calibrated.error
    assert lookalike("classify", place, held_out, "--out", tmp_path / "labels.csv").code == 0
    assert isinstance(json.loads(lookalike("duplicates", place, folder, "--json").out), list)
    index = Index.open(place)
    index.store.marks.add(Mark("item:photos/figs/0.png", "photos/figs/0.png", "photos/figs/1.png", True))
    index.close()
    assert "2 images of 1 classes" in lookalike("labels", place, "--out", tmp_path / "marked.csv").out
    assert "6 items removed, 30 are left" in lookalike("remove", place, "--where", "label=figs").out
    copied = lookalike("copy", place, tmp_path / "copy.index", "--json")
    assert json.loads(copied.out)["items"] == 30, copied.error
    lookalike("copy", place, place).refused("both are the same index: give another place for the copy")
    lookalike("copy", place, folder).refused("the target is not a copy: 36 own items would be lost")
    assert json.loads(lookalike("copy", place, folder, "--replace", "--json").out)["items"] == 30
    assert lookalike("status", place, "--backup", tmp_path / "backup.sqlite").code == 0
    assert "6 items removed, 24 are left" in lookalike("remove", place, "--where", "label=apple").out
    restored = lookalike("status", place, "--restore", tmp_path / "backup.sqlite", "--json")
    assert json.loads(restored.out)["items"] == 30, restored.error
    lookalike("search", "postgresql://me:secret@127.0.0.1:1/x", query).refused("the server does not answer")


def test_an_index_that_was_stopped_before_it_had_its_model_gets_it(saved, photos, model, new_place):
    place = new_place()
    places.created(place, identity_of(model)).close()
    index = cli_index._opened(str(saved), photos, str(place), False, False)
    assert index.store.documents.model(model.fingerprint).keys() == model_content(model).keys()
    index.close()


@pytest.mark.slow
def test_a_page_in_front_of_a_server(saved, photos, new_address, tmp_path):
    index = Index.create(new_address(), saved)
    index.add(photos)
    index.close()
    with Server(index.place, logs=tmp_path / "serve") as served:
        answer = served.search(("image", encoded()), ("k", "3")).json
        assert [hit["item"]["label"] for hit in answer["hits"]] == ["figs"] * 3
        assert answer["missing"] == []
        assert served("GET", "/v1/index").json["items"] == 36
