"""What a reader can act on: the verdict, file names, labels to check."""

import json
import re

import numpy as np
import pytest

from lookalike import report
from lookalike.report.run.queries import AnsweredQuery, Strip
from tests.report.conftest import NAMES, PATHS, RESULT, fill, labels, picture, vectors
from tests.report.page_reader import Reader
from tests.report.test_page import ORDER

pytestmark = pytest.mark.usefixtures("no_tsne")


def test_files_are_named_in_tooltips_in_lists_and_on_the_map(run, reader, text):
    worst = json.loads((run / "figures" / "queries_worst.json").read_text())[0]
    assert worst["path"] == PATHS[worst["row"]]
    answer = worst["answers"][0]
    assert answer["path"] == PATHS[answer["row"]]
    titles = [attributes["title"] for _, attributes in reader.elements if "title" in attributes]
    assert f"query of class {worst['label']}\n{worst['path']}" in [title.replace("\ufffd", "\x00") for title in titles]
    assert answer["path"] in reader.words
    shown = json.loads(re.search(r'"names":(\[.*?\]),"states"', text, re.S).group(1))
    assert set(shown) == set(PATHS)


@pytest.mark.parametrize(("scores", "digits"), [((0.91, 0.89), 2), ((0.8214, 0.8211, 0.79), 4), ((0.5, 0.5), 2)])
def test_similarities_have_enough_decimals_to_differ(scores, digits):
    answers = [AnsweredQuery(row, "a", score, True, "") for row, score in enumerate(scores)]
    notes = [tile.note for tile in Strip("best", 9, "a", "", 1.0, answers).tiles()[1:]]
    assert notes == [f"{score:.{digits}f}" for score in scores]


def test_a_wrong_label_is_listed_with_its_file(tmp_path):
    folder = fill(tmp_path / "run")
    names = labels()
    names[20] = NAMES[9]  # an image of class 2
    np.savez(folder / "test.npz", embeddings=vectors(0.2), labels=names, paths=PATHS)
    page = Reader(report.write(folder, picture).read_text())
    (row,) = json.loads((folder / "figures" / "labels.json").read_text())
    assert (row["path"], row["label"], row["suggested label"]) == (PATHS[20], NAMES[9], NAMES[2])
    assert {row["path"], row["evidence"]} <= set(page.words)


VERDICT = {
    "delivered": "head & <features>",
    "in_words": "9 of 10 searches put the right class first, on classes the model never saw.",
    "reasons": ["Training helped: +0.031 map@r over the frozen network."],
    "warnings": ["Validation is saturated."],
    "next": ["More classes would help most."],
    "candidates": [
        {"name": "raw pixels", "metrics": {"map@r": 0.1, "recall@1": 0.3}, "dim": 768, "bytes_per_item": 3072},
        {
            "name": "head & <features>",
            "metrics": {"map@r": 0.512, "recall@1": 0.9},
            "dim": 128,
            "delivered": True,
            "intervals": {"map@r": [0.48, 0.53]},
            "milliseconds_per_image": 12.5,
            "bytes_per_item": 512,
        },
    ],
}


def test_the_verdict_stands_on_top(tmp_path):
    folder = fill(tmp_path / "run")
    (folder / "result.json").write_text(json.dumps(RESULT | {"verdict": VERDICT}))
    page = Reader(report.write(folder).read_text())
    assert [attributes["id"] for tag, attributes in page.elements if tag == "section"] == [
        *ORDER[:2],
        "candidates",
        *ORDER[2:],
    ]
    words = "".join(page.words)
    sentences = [
        VERDICT["in_words"],
        VERDICT["reasons"][0],
        "Validation is saturated.",
        "More classes would help most.",
    ]
    cells = ["0.512 [0.480, 0.530]", "✓ head & <features> (delivered)", "12.50"]
    for expected in ("Delivered: head & <features>", *sentences, *cells):
        assert expected in words
    assert words.index(VERDICT["in_words"]) < words.index("Measured on") < words.index("Delivered") < words.index("✓")
