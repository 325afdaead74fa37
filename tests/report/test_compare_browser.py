"""The page of a comparison in a real browser: quiet, on its own, readable at both widths, and its tables sort."""

import pytest

from lookalike.report.compare import compare, write
from tests.fixtures.chromium import show
from tests.report.browser import check_quiet_alone_and_readable
from tests.report.compared import finished


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    runs = [
        finished(folder / f"{name}-seed-{seed}", noise, seed, loss=name)
        for name, noise in (("a <img src=x onerror=alert(1)>", 0.9), ("margin", 0.2), ("nca", 0.5))
        for seed in (0, 1)
    ]
    return write(compare(runs, dataset="cub200"), folder / "out")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_quiet_alone_and_readable(window, page, width, scheme):
    check_quiet_alone_and_readable(window, page, width, scheme, least=300)


def test_tables_sort_and_names_are_text(window, page):
    show(window, page)
    assert "<img src=x onerror=alert(1)>" in window.execute_script("return document.body.innerText")
    column = "return [...document.querySelectorAll('.by-method tbody tr')].map((r) => Number(r.cells[3].dataset.value))"
    before = window.execute_script(column)
    window.execute_script("document.querySelectorAll('.by-method th button')[3].click()")
    assert window.execute_script(column) == sorted(before)
