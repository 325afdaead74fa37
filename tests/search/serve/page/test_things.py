"""An index of things on the page: the photos of each, why it was found, and photos or other things instead."""

from contextlib import closing
from dataclasses import replace

import pytest
from selenium.webdriver.support.select import Select

from lookalike.models import Preprocessing
from lookalike.search import Index
from tests.search.serve.client import Server
from tests.search.serve.page.drawn_shop import COLUMN, NAMES, make_shop
from tests.search.serve.page.opened import Page

PHOTOS = """
return [...document.querySelectorAll('.card')].map(
  (card) => [...card.querySelectorAll('.photos img')].map((image) => image.alt))
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory, model):
    """Things by a column that is not the label, each ranked by its best two photos."""
    place = make_shop(
        tmp_path_factory.mktemp("things"), replace(model, preprocessing=Preprocessing(crop=96, resize=96))
    )
    with closing(Index.open(place)) as index:
        index.have_things("brand")
        index.store.documents.write("quality", '{"pooled": 2}')
    return place


@pytest.fixture
def page(window, shop):
    with Server(shop) as running:
        yield Page(window, f"http://127.0.0.1:{running.port}")


def test_things_show_their_photos_and_why_they_were_found(page, shop):
    page.open()
    page.upload(shop.parent / "mug.jpg")
    names = page.labels()
    assert {"Norrland", "Sol & Co", "Haven"} < set(names)
    assert page.text("#summary").startswith(f"{len(names)} things by brand among ")
    photos = dict(zip(names, page.run(PHOTOS), strict=True))
    assert [len(photos[name]) for name in ("Norrland", "Haven")] == [1, 1]  # the other one of its best two
    assert photos["Haven"][0].startswith("Another photo of it, similarity ")
    page.wait("return [...document.querySelectorAll('.photos img')].every((image) => image.naturalWidth)")
    page.check(least=10)
    page.click(".tool.why")
    page.wait("return document.getElementById('why').open")
    assert page.text("#why-title") == f"Why {names[0]} was found"
    assert page.text("#why-words").endswith("This is the best of the 2 photos whose mean similarity ranked it.")
    assert page.texts("#why figcaption") == ["Query", names[0]]


def test_photos_and_other_things_instead(page, shop):
    page.open(width=390)
    page.upload(shop.parent / "mug.jpg")
    assert page.texts("#group option") == ["brand", "nothing", "label", "kind", "colour", "price", COLUMN]
    Select(page.one("#group")).select_by_visible_text("nothing")
    page.wait("return document.querySelectorAll('.card').length > 9")
    page.answered()
    assert max(page.labels().count(name) for name in NAMES) > 1
    assert page.run(PHOTOS) == [[]] * len(page.labels())
    Select(page.one("#group")).select_by_visible_text("label")
    page.wait("return document.getElementById('summary').textContent.includes('things by label')")
    page.answered()
    assert sorted(set(page.labels())) == sorted(page.labels())
    page.check(least=10)
