"""Groups and questions on the command line: from photos without labels to a table that fit reads."""

import csv
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from lookalike import data
from lookalike.models import Model
from lookalike.search import Index
from lookalike.search.items import Item


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Vectors of six kinds, 8 photos each; two of the kinds have a name for half of their items."""
    from tests.cli.processes import Lookalike

    place, draw = tmp_path_factory.mktemp("shop"), np.random.default_rng(0)
    vectors = np.repeat(np.eye(6, 16), 8, 0) + 0.02 * draw.normal(size=(48, 16))
    labels = np.array([f"kind {row // 8}" if row < 16 and row % 2 else "" for row in range(48)])
    np.savez(
        place / "v.npz", embeddings=vectors.astype(np.float32), labels=labels, ids=[f"{row:02d}" for row in range(48)]
    )
    completed = Lookalike(place)("index", "none", place / "v.npz", "--out", place / "shop.index")
    assert completed.code == 0, completed.error
    return place / "shop.index"


def rows(table):
    with table.open() as file:
        return list(csv.DictReader(file))


def test_items_of_an_index_join_known_classes_or_form_new_groups(lookalike, shop, tmp_path):
    completed = lookalike("discover", shop, "--out", tmp_path / "found.csv")
    assert completed.code == 0, completed.error
    assert "8 of known classes, 8 that join them, 32 in 4 new groups, 0 apart" in completed.out
    found = {row["path"]: row for row in rows(tmp_path / "found.csv")}
    assert {found[f"{row:02d}"]["label"] for row in range(8)} == {"kind 0"}
    assert [found[f"{row:02d}"]["verdict"] for row in range(2)] == ["joined", "known"]
    assert len({found[f"{row:02d}"]["label"] for row in range(16, 48)}) == 4


def test_photos_become_a_table_that_fit_reads(lookalike, finished, photos, tmp_path):
    flat = tmp_path / "flat"
    flat.mkdir()
    for file in photos.rglob("*.png"):
        shutil.copy(file, flat / f"{file.parent.name} {file.name}")
    arguments = ("discover", flat, "--model", finished[0] / "model", "--json", "--out")
    summary = json.loads(lookalike(*arguments, tmp_path / "found.csv").out)
    assert summary["photos"] == 72 == summary["found"] + summary["apart"]
    assert lookalike(*arguments, tmp_path / "again.csv").code == 0
    assert (tmp_path / "found.csv").read_bytes() == (tmp_path / "again.csv").read_bytes()
    table = data.load(str(tmp_path / "found.csv"))
    assert len(table) == summary["found"]
    assert len(table.label_names) == summary["groups"]
    first = [row["path"] for row in rows(tmp_path / "found.csv")][:2]
    joined = lookalike(*arguments, tmp_path / "same.csv", "--same", ",".join(first), "--least", 2)
    assert joined.code == 0, joined.error
    assert len({row["label"] for row in rows(tmp_path / "same.csv")[:2]} - {""}) == 1


def test_answers_are_kept_and_promise_a_purity(lookalike, shop, tmp_path):
    table = tmp_path / "found.csv"
    assert lookalike("discover", shop, "--out", table).code == 0
    assert "nothing is promised" in lookalike("ask", table).out
    answers = [word for number in range(1, 31) for word in ("--answer", f"{number}=same")]
    content = json.loads(lookalike("ask", table, *answers, "--json").out)
    assert content["answers"] == content["same"] == 30
    assert content["purity"] == pytest.approx(0.8876, abs=1e-4)
    assert content["question"]["number"] == 31
    with (tmp_path / "found.answers.jsonl").open("a") as file:
        file.write('{"number": 31, "left"')  # a process that was killed while it wrote
    content = json.loads(lookalike("ask", table, "--answer", "1=different", "--answer", "31=unsure", "--json").out)
    assert (content["answers"], content["same"]) == (31, 29)
    assert lookalike("discover", shop, "--out", table, "--level", 1, "--least", 2).code == 0
    other = json.loads(lookalike("ask", table, "--json").out)
    assert other["answers"] < 31  # those of other pairs say nothing about these groups


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--level", 2), "a level is a number from 0 (coarse) to 1 (fine), not 2"),
        (("--same", "nobody.jpg,00"), "'nobody.jpg' is not among the 48 photos"),
        (("--same", "00,01", "--level", 0.5), "give --level or --same, not both"),
        (("--model", "somewhere"), "an index has its own vectors: leave out --model"),
    ],
)
def test_mistakes_are_one_line(lookalike, shop, arguments, message, tmp_path):
    completed = lookalike("discover", shop, "--out", tmp_path / "found.csv", *arguments)
    assert completed.code == 2
    assert message in completed.error
    assert not (tmp_path / "found.csv").exists()


def test_mistaken_answers_are_one_line(lookalike, shop, tmp_path):
    table = tmp_path / "found.csv"
    assert "write one with lookalike discover" in lookalike("ask", table).error
    assert lookalike("discover", shop, "--out", table).code == 0
    assert "'1' is no answer" in lookalike("ask", table, "--answer", "1").error
    assert "there is no question 0" in lookalike("ask", table, "--answer", "0=same").error


def test_the_next_question_of_an_index_and_the_table_after_it(lookalike, shop, tmp_path):
    index = tmp_path / "shop.index"
    shutil.copytree(shop, index)
    content = json.loads(lookalike("ask", index, "--json").out)
    assert (content["answers"], content["question"]["number"]) == (0, 1)
    assert json.loads(lookalike("ask", index, "--json").out) == content
    answered = lookalike("ask", index, "--answer", "1=same")
    assert answered.out.startswith("Answers: 1, merges: 1, table: "), answered.error
    assert [(mark.by, mark.right) for mark in Index.open(index).store.marks.every()] == [("review", True)]
    labels = {row["path"]: row["label"] for row in rows(tmp_path / "shop.index.review" / "labels.csv")}
    assert labels[content["question"]["left"]] == labels[content["question"]["right"]]
    again = lookalike("ask", index, "--answer", "1=same")
    assert (again.code, "question 1 is not the next one, which is 2" in again.error) == (2, True)


def test_groups_are_found_anew_where_items_have_come_and_answers_stay(lookalike, shop, tmp_path):
    index = tmp_path / "shop.index"
    shutil.copytree(shop, index)
    answers = [word for number in range(1, 4) for word in ("--answer", f"{number}=different")]
    assert lookalike("ask", index, *answers).code == 0
    store = Index.open(index).store
    store.put([Item("new")], store.vectors(["00"]))
    stale = lookalike("ask", index, "--answer", "4=unsure")
    assert (stale.code, "found again" in stale.error) == (0, False)  # it is an answer to what was shown
    anew = lookalike("ask", index, "--json")
    assert "Photos have come or gone: groups are found again; your answers and changes stay." in anew.error
    content = json.loads(anew.out)
    assert (content["answers"], content["question"]["number"], content["fit_again"]) == (4, 6, False)
    assert len(rows(index.with_name("shop.index.review") / "labels.csv")) == 49


@pytest.fixture
def flat(photos, tmp_path):
    """All photos in one folder, and a table with the labels of half of two classes."""
    flat, lines = tmp_path / "flat", ["path,label,verdict"]
    flat.mkdir()
    for number, file in enumerate(sorted(photos.rglob("*.png"))):
        kind = file.parent.name
        shutil.copy(file, flat / f"{kind} {file.name}")
        if kind in ("class 00", "class 01"):
            lines.append(f"flat/{kind} {file.name},{kind},{'known' if number % 2 else 'joined'}")
    (tmp_path / "some.csv").write_text("\n".join(lines) + "\n")
    return flat


def test_known_labels_reach_a_review_and_stay_when_groups_are_found_anew(lookalike, finished, flat, tmp_path):
    def known():
        verdicts = {row["path"].rsplit("/", 1)[1]: row["verdict"] for row in rows(tmp_path / "flat.review/labels.csv")}
        return sorted(name for name, verdict in verdicts.items() if verdict == "known")

    model = ("--model", finished[0] / "model")
    assert lookalike("ask", flat, *model).code == 0
    assert known() == []
    refused = lookalike("ask", flat, "--known", tmp_path / "some.csv", "--answer", "1=same")
    assert (refused.code, "give --known before them" in refused.error) == (2, True)
    begun = lookalike("ask", flat, "--known", tmp_path / "some.csv")
    assert "The known labels are others: groups are found again; your answers and changes stay." in begun.error
    given = known()
    assert {name[:8] for name in given} == {"class 00", "class 01"}
    assert len(given) == len(rows(tmp_path / "some.csv")) / 2  # others were only found
    assert "found again" not in lookalike("ask", flat, "--known", tmp_path / "some.csv").error
    (flat / given[0]).unlink()
    anew = lookalike("ask", flat)
    assert "Photos have come or gone" in anew.error
    assert "Known labels without their photo: 1." in anew.error
    assert known() == given[1:]


@pytest.mark.usefixtures("flat")
def test_a_table_that_only_names_photos_is_no_table_of_groups(lookalike, finished, tmp_path):
    completed = lookalike("ask", tmp_path / "some.csv", "--model", finished[0] / "model")
    assert completed.code == 0, completed.error
    assert completed.out.startswith("Answers: 0, merges: 0, table: ")
    assert f"--known {tmp_path / 'some.csv'} takes those that people gave" in completed.error
    assert (tmp_path / "some.csv.review" / "labels.csv").is_file()


def test_a_model_off_the_sphere_is_refused_before_photos_are_embedded(lookalike, finished, tmp_path):
    replace(Model.load(finished[0] / "model"), geometry="none").save(tmp_path / "model")
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "broken.png").write_text("no picture")
    refused = lookalike("ask", tmp_path / "flat", "--model", tmp_path / "model")
    assert (refused.code, "questions need vectors that are compared by their angle" in refused.error) == (2, True)
