"""The page of a search in a real browser: quiet, on its own, readable at both widths, and its table sorts."""

import pytest

from lookalike.recipe import of_tree
from lookalike.sweeps import write
from lookalike.sweeps.ranges import Range
from lookalike.sweeps.tune import SearchResult
from tests.fixtures.chromium import show
from tests.report.browser import check_quiet_alone_and_readable

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    ranges = [
        Range("optimiser.lr", 1e-5, 1e-3, log=True),
        Range("loss.margin", 0.1, 0.5),
        Range("loss.name", choices=("triplet", HOSTILE)),
    ]
    trials = [
        {
            "number": place,
            "state": "pruned" if place % 5 == 4 else "complete",
            "value": (place * 7 % 11) / 20,
            "seconds": 1.0 + place,
            "params": {
                "optimiser.lr": 1e-5 * (place + 1),
                "loss.margin": 0.1 + place / 40,
                "loss.name": HOSTILE if place % 2 else "triplet",
            },
        }
        for place in range(14)
    ]
    best = max((trial for trial in trials if trial["state"] == "complete"), key=lambda trial: trial["value"])
    recipe = of_tree({"loss": {"name": "triplet"}, "sampler": {"name": "class_balanced"}})
    return write(SearchResult(trials, best, recipe), ranges, tmp_path_factory.mktemp("search"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_quiet_alone_and_readable(window, page, width, scheme):
    check_quiet_alone_and_readable(window, page, width, scheme, least=50)
    unnamed = (
        "return [...document.querySelectorAll('svg')].filter((s) => !s.getAttribute('aria-label') && !s.ariaHidden)"
    )
    assert window.execute_script(f"{unnamed}.length") == 0


def test_the_table_sorts_and_names_are_text(window, page):
    show(window, page)
    assert HOSTILE in window.execute_script("return document.body.innerText")
    rows = "return [...document.querySelectorAll('#trials tbody tr')].map((r) => Number(r.cells[{0}].dataset.value))"
    heads = window.execute_script("return [...document.querySelectorAll('#trials th')].map((h) => h.innerText)")
    place = next(number for number, head in enumerate(heads) if "map@r" in head)
    before = window.execute_script(rows.format(place))
    window.execute_script(f"document.querySelectorAll('#trials th button')[{place}].click()")
    after = window.execute_script(rows.format(place))
    assert before != sorted(before)
    assert after in (sorted(before), sorted(before, reverse=True))
