"""Why a hit was found, on the page: both pictures lit where the similarity comes from, and the same in words."""

from dataclasses import replace

import pytest
from selenium.webdriver.common.keys import Keys

from lookalike.models import Preprocessing
from tests.search.serve.client import Server
from tests.search.serve.page.drawn_shop import make_shop
from tests.search.serve.page.opened import ANSWERED, Page

LIT = "return document.getElementById('why').open && document.querySelectorAll('.lit canvas').length === 2"
DARKNESS = """
return [...document.querySelectorAll('.lit canvas')].map((canvas) =>
  [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data].filter((_, at) => at % 4 === 3))
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory, model):
    """Seen at a size at which the last map has several places."""
    return make_shop(tmp_path_factory.mktemp("why"), replace(model, preprocessing=Preprocessing(crop=96, resize=96)))


@pytest.fixture(scope="module")
def server(shop):
    with Server(shop) as running:
        yield running


@pytest.fixture
def page(window, server):
    return Page(window, f"http://127.0.0.1:{server.port}")


def test_a_hit_says_why_it_was_found(page, shop):
    page.open()
    page.upload(shop.parent / "mug.jpg")
    page.click(".tool.why")
    page.wait(LIT)
    for darkness in page.run(DARKNESS):
        assert len(darkness) > 1
        assert min(darkness) == 0, "the place that gives most is seen as it is"
        assert max(darkness) > 20
    words = page.text("#why-words")
    assert "of the similarity of" in words
    assert "of the query" in words
    assert page.run("return document.getElementById('why').getAttribute('aria-describedby')") == "why-words"
    page.check(least=10)
    page.press(Keys.ESCAPE)
    page.wait("return !document.getElementById('why').open")
    assert not page.run("return document.getElementById('results').hidden"), "Escape closes what is on top, only"
    assert page.run("return document.activeElement.matches('.tool.why')")


def test_one_picture_can_be_explained_several_cannot(page):
    page.open("/?item=shop%2Falva-mug-0.jpg", width=390, until=ANSWERED)
    page.answered()
    page.click(".tool.why")
    page.wait(LIT)
    page.check(least=10)
    page.click("#why button")
    page.click(".tool.plus")
    page.wait("return history.state.examples.length === 2")
    page.answered()
    assert page.texts(".tool.why") == []
