"""Every term of the report and of the terminal has an entry in the glossary, and the page leads to it."""

import inspect
import json
import re
import sys
from typing import get_args

import pytest

from lookalike import report
from lookalike.fit import readouts
from lookalike.report.page import glossary
from lookalike.report.run.measures import METRICS
from lookalike.search import Answer, wording
from lookalike.search.items import Verdict
from tests.report.conftest import RESULT, fill
from tests.report.page_reader import Reader

PLAIN = {  # headings that are words of everyday life
    "metric",
    "candidate (delivered)",
    "ms per image",
    "bytes per item",
    "network",
    "pixels",
    "sees",
    "images",
    "class",
    "category",
    "queries",
    "classes",
    "most often taken for",
}
NAME = "frozen features, head and whitened features, 30% head, 1408-D"
FIGURES = {"metrics": {"map@r": 0.5, "recall@1": 0.6}, "intervals": {"map@r": [0.4, 0.6]}}
VERDICT = {
    "delivered": NAME,
    "candidates": [{"name": NAME, "delivered": True, "dim": 1408, "folds": FIGURES, **FIGURES}],
    "networks": [
        {
            "backbone": "conv4",
            "size": size,
            "readout": "whitened features",
            "images": 9,
            "milliseconds_per_image": 1.0,
            "difference": [0.0, 0.0, 0.0],
            "chosen": size == 64,
            **FIGURES,
        }
        for size in (32, 64)
    ],
}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = fill(tmp_path_factory.mktemp("runs") / "judged")
    (folder / "result.json").write_text(json.dumps(RESULT | {"verdict": VERDICT}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "openTSNE", None)
        return report.write(folder).read_text(encoding="utf-8")


def links(markup: str) -> list[str]:
    return re.findall(r'<a href="#(word-[^"]+)"', markup)


def test_headings_of_tables_lead_to_the_glossary(page):
    heads = re.findall(r"<thead>(.*?)</thead>", page, re.S)
    cells = [cell for head in heads for cell in re.findall(r"<th[^>]*>(.*?)</th>", head, re.S)]
    assert len(heads) == 6
    unexplained = {re.sub(r"<[^>]*>", "", cell) for cell in cells if not links(cell)}
    assert unexplained - PLAIN - {"this model"} == set()


def test_metrics_and_what_was_delivered_lead_to_it(page):
    rows = re.findall(r'<th scope="row">(.*?)</th>', page)
    assert rows
    assert all(links(row) for row in rows)
    delivered = re.search(r"Delivered: <strong>(.*?)</strong>", page)[1]
    assert re.sub(r"<[^>]*>", "", delivered) == NAME
    assert len(links(delivered)) == 3


def test_every_link_arrives(page):
    ids = [attributes["id"] for _, attributes in Reader(page).elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert set(links(page)) <= set(ids)


def test_what_the_terminal_says_has_an_entry():
    names = re.findall(r'FittedReadout\("([^"]+)"', inspect.getsource(readouts))
    assert len(names) >= 5
    said = [
        *names,
        *METRICS,
        *get_args(Verdict),
        "95% interval",
        "frozen backbone, 1280-D",
        "raw pixels",
        "trained network",
    ]
    said += re.findall(
        r"(\w+) \d+%", wording.in_brief(Answer([], match=0.5, chance=0.5, verdict="sure", words="sure: a"))
    )
    assert {"match", "chance"} <= set(said)
    assert [words for words in said if not links(glossary.linked(words))] == []


def test_entries_are_in_order_and_named_once():
    entries = list(glossary.terms())
    assert entries == sorted(entries, key=str.casefold)
    names = [name for entry in entries for name in entry.split(", ")]
    assert len(names) == len(set(names))
