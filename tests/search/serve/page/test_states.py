"""When something is in the way: a token, an unreadable photo, a busy server, none at all, one that only answers."""

import pytest
from selenium.webdriver.common.keys import Keys

from tests.report.browser import requests
from tests.search.serve.client import Server
from tests.search.serve.page.drawn_shop import HOSTILE
from tests.search.serve.page.opened import ANSWERED, Page

TOKEN = "an-open-secret"
NOTICE = "return !document.getElementById('notice').hidden"


@pytest.fixture(scope="module")
def server(shop):
    with Server(shop, words=("--read-only",), token=TOKEN) as running:
        yield running


@pytest.fixture
def page(window, server):
    return Page(window, f"http://127.0.0.1:{server.port}")


@pytest.fixture
def forgetful(page):
    """The browser without the token of the test before."""
    page.open("/docs", until="return true")
    page.run("sessionStorage.clear()")
    return page


def loaded(page):
    page.wait("return [...document.images].filter((e) => e.checkVisibility()).every((e) => e.naturalWidth)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_token_is_asked_for_and_opens_the_index(forgetful, scheme):
    page = forgetful
    page.open(scheme=scheme)
    assert page.run("return document.activeElement.id") == "token-field"
    page.check(least=5, complaints=1)  # the browser itself tells of the refusal
    page.press("wrong", Keys.ENTER)
    page.wait(NOTICE)
    assert "That is not the token" in page.text("#notice")
    page.check(least=7, complaints=1)
    page.press(TOKEN, Keys.ENTER)
    page.wait("return !document.getElementById('start').hidden")
    page.wait("return document.querySelector('#newest img')?.src.startsWith('blob:')")
    loaded(page)
    page.check(least=30)


def test_a_token_in_the_address_is_taken_out_of_it(forgetful, shop):
    page = forgetful
    page.open(f"/#token={TOKEN}")
    assert page.run("return location.href") == f"{page.address}/"
    page.upload(shop.parent / "mug.jpg")
    assert page.labels()
    loaded(page)
    assert all(TOKEN not in address for address in requests(page.window) if "#" not in address)
    page.window.refresh()
    page.wait("return !document.getElementById('start').hidden")
    assert page.one("#forgotten").is_displayed()  # a line where photos come in, and nothing louder
    assert not page.one("#toast").is_displayed()
    page.upload(shop.parent / "mug.jpg")
    assert not page.one("#forgotten").is_displayed()


def test_a_read_only_index_takes_no_marks(page):
    page.open(f"/?item=shop%2Falva-mug-0.jpg#token={TOKEN}", until=ANSWERED)
    assert page.labels()
    assert page.texts(".card .right") == []
    assert not page.one(".marking").is_displayed()
    page.one(".card .picture").send_keys("y")
    assert page.run("return document.getElementById('toast').hidden")
    assert page.window.get_log("browser") == []


@pytest.mark.parametrize("width", [1280, 390])
def test_an_unreadable_photo_is_refused_with_a_way_on(page, tmp_path, width):
    page.open(f"/#token={TOKEN}", width=width)
    for name, content in (
        ("words.jpg", b"not a picture"),
        ("cut.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
        ("no.gif", b""),
    ):
        (tmp_path / name).write_bytes(content)
        page.upload(tmp_path / name)
        page.wait(NOTICE)
        assert "This photo cannot be searched for" in page.text("#notice")
        assert page.one("#start").is_displayed()
        page.check(least=30, complaints=1)
        page.click("#notice button")


def test_names_and_filters_that_do_not_exist(page):
    page.open(f"/#token={TOKEN}")
    page.press("/", f"{HOSTILE[:10]}?", Keys.ENTER)
    page.wait(NOTICE)
    assert f"“{HOSTILE[:10]}?” is neither the id of an item nor part of the name of a class." in page.text("#notice")
    page.open(f"/#token={TOKEN}")
    page.press("/", HOSTILE[:10], Keys.ENTER)  # one class only, of one item: what is like it
    page.answered()
    assert len(page.labels()) == 12
    page.open(f"/?item=nothing#token={TOKEN}", until=NOTICE)
    assert "nothing" in page.text("#notice p")
    page.open(f"/?item=shop%2Falva-mug-0.jpg&where=size%3D3#token={TOKEN}", until=NOTICE)
    assert "size" in page.text("#notice p")
    page.click("#notice button")
    page.answered()
    assert page.labels()


def test_a_photo_beyond_the_limit_is_made_smaller(page, tmp_path):
    import numpy as np
    from PIL import Image

    noise = np.random.default_rng(0).integers(0, 255, (2600, 2600, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "large.png", compress_level=0)
    assert (tmp_path / "large.png").stat().st_size > 20_000_000
    page.open(f"/#token={TOKEN}")
    page.upload(tmp_path / "large.png")
    assert page.labels()
    page.wait("return document.querySelector('#frame img').naturalWidth === 2048")


@pytest.mark.slow
def test_busy_then_gone_then_back(window, shop):
    """The page waits and goes on by itself, whatever happens to the server meanwhile."""
    with Server(shop, token=TOKEN) as server:
        come_and_go(Page(window, f"http://127.0.0.1:{server.port}"), shop, server)


def come_and_go(page, shop, server):
    page.open(f"/#token={TOKEN}")
    throttle(page.window, 8000)
    page.one("#start .choose").send_keys(str(shop.parent / "lamp.jpg"))
    page.wait("return document.querySelectorAll('.skeleton').length > 0 && !document.getElementById('progress').hidden")
    assert page.text("#summary") == "Searching…"
    page.check_readable(least=20)
    throttle(page.window, 0)
    page.answered()
    server.__exit__()
    page.click(".card .picture")
    page.wait(NOTICE)
    assert "The server does not answer" in page.text("#notice")
    assert "Start it again with the same command" in page.text("#notice")
    page.check_readable(least=20)
    full = Server(shop, token=TOKEN, limits={"waiting": 0})  # refuses every search as if its queue were full
    full.start(server.port)
    page.wait("return document.querySelector('#notice h2').textContent === 'The server is busy'")
    assert "Again in" in page.text("#notice")
    page.check_readable(least=20)
    full.__exit__()
    server.start(server.port)
    page.answered()
    page.wait("return document.getElementById('notice').hidden")
    assert page.labels()


def throttle(window, latency: int) -> None:
    window.execute_cdp_cmd("Network.enable", {})
    conditions = {"offline": False, "latency": latency, "downloadThroughput": -1, "uploadThroughput": -1}
    window.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)
