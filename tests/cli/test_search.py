"""Search on the command line: from a finished run to an index, hits, verdicts, labels, pages."""

import csv
import json
import re
import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from lookalike import data
from lookalike.search import Index


@pytest.fixture(scope="module")
def shop(tmp_path_factory, finished, photos):
    from tests.cli.processes import Lookalike

    place = tmp_path_factory.mktemp("shop")
    completed = Lookalike(place)("index", finished[0] / "model", photos, "--out", place / "shop.index")
    assert completed.code == 0, completed.error
    return place / "shop.index"


def test_an_index_is_made_and_brought_up_to_date(lookalike, finished, photos, tmp_path):
    count = len(list(photos.rglob("*.png")))
    first = lookalike("index", finished[0] / "model", photos, "--out", tmp_path / "index")
    assert f"{count} added" in first.out
    assert "cannot promise" in first.out or "of the answers called sure are right" in first.out
    again = lookalike("index", finished[0] / "model", photos, "--out", tmp_path / "index", "--json")
    assert json.loads(again.out)["updates"][0]["unchanged"] == count


def test_hits_as_a_table_as_json_and_as_a_page(lookalike, shop, photos, tmp_path):
    query = sorted(photos.rglob("*.png"))[0]
    table = lookalike("search", shop, query, "--k", 3, "--page", tmp_path / "hits.html")
    assert table.code == 0, table.error
    assert str(query) in table.out
    (answer,) = json.loads(lookalike("search", shop, query, "--k", 3, "--json").out)
    assert next(hit["path"] for hit in answer["hits"]) == str(query)
    assert answer["hits"][0]["similarity"] == pytest.approx(1, abs=1e-5)
    page = (tmp_path / "hits.html").read_text()
    assert page.count("data:image/jpeg;base64,") == 4
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", page)


def test_why_in_words_as_json_and_as_pictures(lookalike, shop, photos, tmp_path):
    query = sorted(photos.rglob("*.png"))[0]
    said = lookalike("search", shop, query, "--k", 2, "--why", "--page", tmp_path / "why.html")
    assert said.code == 0, said.error
    assert re.search(r"^2\. .*similarity of", said.out, re.M)
    page = (tmp_path / "why.html").read_text()
    assert page.count("data:image/jpeg;base64,") == 5
    assert page.count("highlighted where the similarity comes from") == 4
    (answer,) = json.loads(lookalike("search", shop, query, "--k", 2, "--why", "--json").out)
    for hit in answer["hits"]:
        assert hit["why"]["similarity"] == pytest.approx(hit["similarity"], abs=1e-5)
    lookalike("search", shop, "--like", query, "--like", query, "--why").refused("needs exactly one query picture")


def test_a_photo_that_is_gone_is_found_and_not_explained(lookalike, finished, photos, tmp_path):
    folder = shutil.copytree(sorted(photos.rglob("*.png"))[0].parent, tmp_path / "few")
    assert lookalike("index", finished[0] / "model", folder, "--out", tmp_path / "index").code == 0
    query, gone, *_ = sorted(folder.iterdir())
    gone.unlink()
    (answer,) = json.loads(lookalike("search", tmp_path / "index", query, "--why", "--json").out)
    for hit in answer["hits"]:
        assert (
            (hit["why"] is None)
            == (hit["path"] == str(gone))
            == ("is missing, or has changed" in str(hit.get("problem")))
        )
    said = lookalike("search", tmp_path / "index", query, "--why", "--page", tmp_path / "why.html")
    assert (said.code, said.out.count("similarity of"), said.out.count("is missing")) == (
        0,
        len(answer["hits"]) - 1,
        1,
    )
    assert (tmp_path / "why.html").read_text().count("is missing, or has changed") == 1


def test_crops_are_looked_for_where_they_are_asked_for(lookalike, shop):
    found = lookalike("duplicates", shop, "--crops")
    assert re.search(r"^crop: \d+ group", found.out, re.M), found.error
    assert "crop: " not in lookalike("duplicates", shop).out


def test_things_answer_where_the_index_has_them(lookalike, shop, finished, photos, tmp_path):
    place, query = shutil.copytree(shop, tmp_path / "things.index"), sorted(photos.rglob("*.png"))[0]
    wrong = lookalike("index", finished[0] / "model", photos, "--out", place, "--thing", "labl")
    assert (wrong.code, "unknown column of things 'labl': did you mean 'label'" in wrong.error) == (2, True)
    assert lookalike("index", finished[0] / "model", photos, "--out", place, "--thing", "label").code == 0
    page = tmp_path / "hits.html"
    (answer,) = json.loads(lookalike("search", place, query, "--like", query, "--k", 3, "--json", "--page", page).out)
    assert page.read_text().count('alt="the query"') == 2
    names = [hit["thing"] for hit in answer["hits"]]
    assert names[0] == answer["hits"][0]["label"] == query.parent.name
    assert len(set(names)) == 3
    assert [hit["photos"][0]["id"] for hit in answer["hits"]] == [hit["id"] for hit in answer["hits"]]
    table = lookalike("search", place, query, "--k", 3)
    assert re.search(r"^similarity +thing +label +item$", table.out, re.MULTILINE)
    assert re.search(r"things +\d+ things by 'label'; each is ranked by its best", lookalike("status", place).out)
    table = tmp_path / "shop.csv"
    table.write_text("\n".join(["path,sku", *(f"{photo},{photo.stem[0]}" for photo in photos.rglob("*.png"))]))
    said = lookalike("calibrate", place).out + lookalike("index", finished[0] / "model", table, "--out", place).out
    assert "dropped" not in said
    said = lookalike("index", finished[0] / "model", table, "--out", place, "--thing", "sku").out
    assert "The calibration was about other things and is dropped." in said


def test_conditions_groups_boxes_and_examples(lookalike, shop, photos):
    query = sorted(photos.rglob("*.png"))[0]
    (grouped,) = json.loads(lookalike("search", shop, query, "--group", "label", "--json").out)
    labels = [hit["label"] for hit in grouped["hits"]]
    assert len(labels) == len(set(labels)) > 1
    (one,) = json.loads(lookalike("search", shop, query, "--where", f"label={labels[1]}", "--json").out)
    assert {hit["label"] for hit in one["hits"]} == {labels[1]}
    assert lookalike("search", shop, query, "--box", "0,0,8,8").code == 0
    assert lookalike("search", shop, "--like", query, "--unlike", sorted(photos.rglob("*.png"))[-1]).code == 0
    own = lookalike("search", shop, "--first").out.splitlines()[0]
    assert own.endswith(f"({Path(own.split(' (')[0]).parent.name})")  # the label of the item that is asked with


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.png"], "there is no image and no item 'nowhere.png'"),
        (["QUERY", "--where", "labl=x"], "unknown column 'labl': did you mean 'label'"),
        (["QUERY", "--box", "1,2"], "--box is x,y,width,height in pixels"),
        (["QUERY", "--group", "brand"], "unknown column 'brand'"),
        ([], "give an image or the id of an item to search for"),
    ],
)
def test_mistakes_are_one_line(lookalike, shop, photos, arguments, message):
    query = str(sorted(photos.rglob("*.png"))[0])
    lookalike("search", shop, *[query if word == "QUERY" else word for word in arguments]).refused(message)


def test_another_model_needs_a_new_generation(lookalike, shop, finished, photos, tmp_path):
    from lookalike.models import Architecture, Model

    Model.create(Architecture("conv4", {"channels": 3}, dim=8), seed=5).save(tmp_path / "other")
    index = tmp_path / "index"
    shutil.copytree(shop, index)
    lookalike("index", tmp_path / "other", photos, "--out", index).refused("--new-generation")
    renewed = lookalike("index", tmp_path / "other", photos, "--out", index, "--new-generation")
    assert renewed.code == 0, renewed.error
    assert (
        "uncalibrated: lookalike calibrate measures how far to trust them. 12 classes can promise at most 92%"
        in renewed.out
    )
    status = json.loads(lookalike("status", index, "--json", "--check").out)
    assert (status["generation"], status["dimensions"], status["troubles"]) == (2, 8, [])
    lookalike("index", finished[0] / "model", photos, "--out", index).refused("another model")


def test_another_model_answers_after_a_sample(lookalike, shop, tmp_path):
    from lookalike.models import Architecture, Model

    Model.create(Architecture("conv4", {"channels": 3}, dim=8), seed=5).save(tmp_path / "other")
    index = tmp_path / "index"
    shutil.copytree(shop, index)
    lookalike("upgrade", index, tmp_path / "other", "--sample", 50, "--least", 1.5).refused("--new-generation, or")
    done = lookalike("upgrade", index, tmp_path / "other", "--sample", 50, "--least", 0)
    assert done.code == 0, done.error
    assert "The new model answers now. On a sample of 50 items, recall@10 is" in done.error
    assert "--sample change nothing" not in done.error
    assert "answer by the new model: generation 2." in done.out
    status = json.loads(lookalike("status", index, "--json", "--check").out)
    assert (status["generation"], status["dimensions"], status["troubles"], status.get("upgrade")) == (2, 8, [], None)

    choice = {"kind": "ridge", "sample": 50, "old": 0.9, "new": 0.8, "mapped": {"ridge": 0.7}}
    with closing(Index.open(index)) as opened:
        opened.store.documents.write("upgrade", json.dumps(choice))
    further = lookalike("upgrade", index, tmp_path / "other", "--sample", 60)
    assert further.code == 0, further.error
    assert "0.900 by the old model, 0.800 by the new one, and with items mapped ridge 0.700" in further.error
    assert "ridge keeps 87.5%.\nWarning: that is less than the old model had." in further.error
    assert "The map was accepted before: --least and --sample change nothing now." in further.error


def test_calibrate_classify_duplicates_remove_status(lookalike, shop, photos, tmp_path):
    index = tmp_path / "index"
    shutil.copytree(shop, index)
    found = lookalike("calibrate", index, photos, "--precision", 0.6, "--page", tmp_path / "calibration.html")
    assert found.code == 0, found.error
    assert "plain search" in found.out
    assert "When to believe an answer" in (tmp_path / "calibration.html").read_text()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "broken.png").write_bytes(b"no picture")
    classified = lookalike("classify", index, photos, tmp_path / "more", "--out", tmp_path / "labels.csv", "--guess")
    assert "unreadable: " in classified.error
    assert "broken.png: " in classified.error
    assert "1 unreadable, not in it" in classified.out
    with (tmp_path / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) == {"path", "label", "second", "chance", "similarity", "verdict"}
    assert all(float(row["chance"]) >= 0 for row in rows)
    assert np.mean([row["label"] in row["path"] for row in rows]) > 0.9
    copy = photos.parent / "copies"
    copy.mkdir(exist_ok=True)
    shutil.copy(sorted(photos.rglob("*.png"))[0], copy / "again.png")
    lookalike("index", photos.parent.parent / "none", copy, "--out", index).refused("no model in")
    groups = json.loads(lookalike("duplicates", index, "--json", "--page", tmp_path / "duplicates.html").out)
    assert isinstance(groups, list)
    before = json.loads(lookalike("status", index, "--json").out)["items"]
    removed = lookalike("remove", index, "--where", f"label={rows[0]['label']}")
    assert removed.code == 0
    assert json.loads(lookalike("status", index, "--json").out)["items"] < before
    assert lookalike("status", index, "--compact", "--backup", tmp_path / "copy.sqlite").code == 0
    left = json.loads(lookalike("status", index, "--json").out)["items"]
    assert lookalike("remove", index, "--where", f"label={rows[-1]['label']}").code == 0
    assert json.loads(lookalike("status", index, "--json").out)["items"] < left
    for file in index.glob("index.sqlite*"):
        file.write_bytes(b"damaged" * 1000)
    lookalike("status", index).refused(f"lookalike status {index} --restore FILE")
    restored = lookalike("status", index, "--restore", tmp_path / "copy.sqlite", "--check", "--json")
    assert (json.loads(restored.out)["items"], json.loads(restored.out)["troubles"]) == (left, []), restored.error
    assert lookalike("search", index, "--first").code == 0


def test_tables_hold_no_formulas(lookalike, finished, shop, photos, tmp_path):
    """A class may be called anything: a spreadsheet must not run it, and `fit` must read it as it was."""
    index, label = tmp_path / "index", "=HYPERLINK(0)"
    shutil.copytree(shop, index)
    shutil.copytree(next(path for path in photos.iterdir() if path.is_dir()), tmp_path / "named" / label)
    assert lookalike("index", finished[0] / "model", tmp_path / "named", "--out", index).code == 0
    assert lookalike("classify", index, tmp_path / "named", "--guess", "--out", tmp_path / "labels.csv").code == 0
    text = re.sub(
        ",(uncalibrated|sure|maybe|unknown)\\r", ",checked\r", (tmp_path / "labels.csv").read_bytes().decode()
    )
    (tmp_path / "labels.csv").write_bytes(text.encode())
    with (tmp_path / "labels.csv").open() as file:
        labels = {row["label"] for row in csv.DictReader(file)}
    assert f"'{label}" in labels
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in labels)
    assert label in data.table(tmp_path / "labels.csv").label_names


def test_an_index_of_a_run_starts_with_its_calibration(lookalike, finished, tmp_path):
    run, _ = finished
    made = lookalike("index", run / "model", run, "--out", tmp_path / "unseen")
    assert made.code == 0, made.error
    content = json.loads((run / "result.json").read_text())
    status = json.loads(lookalike("status", tmp_path / "unseen", "--json").out)
    assert status["items"] == content["data"]["test_images"]
    assert ("by the run" in status["calibration"]) == ("calibration" in content)
    assert "calibration" not in content or status["calibration"].endswith(", today")
