"""Searching inside a box, drawn with the mouse, a finger or the keys."""

import pytest
from PIL import Image
from selenium.webdriver.common.keys import Keys

from tests.search.serve.page.opened import ANSWERED

ITEM = "/?item=shop%2Falva-mug-0.jpg"


def test_a_box_is_pulled_with_a_finger(page, shop):
    page.open(width=390)
    page.upload(shop.parent / "mug.jpg")
    page.click("#box-make")
    left, top, width, height = page.run(
        "const b = document.querySelector('.stage').getBoundingClientRect(); return [b.left, b.top, b.width, b.height]"
    )
    for kind, share in (("touchStart", 0.8), ("touchMove", 0.85), ("touchMove", 0.95), ("touchEnd", None)):
        points = [] if share is None else [{"x": left + share * width, "y": top + share * height}]
        page.window.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    page.wait("return history.state.box")
    page.answered()
    assert page.run("return history.state.box") == pytest.approx([64, 64, 240, 240], abs=6)


def test_a_box_is_drawn_moved_and_taken_away_with_the_mouse(page, shop):
    page.open()
    page.upload(shop.parent / "mug.jpg")
    whole = page.texts(".card .value")
    left, top, width, height = page.run(
        "const b = document.querySelector('.stage').getBoundingClientRect(); return [b.left, b.top, b.width, b.height]"
    )

    def drag(x0, y0, x1, y1):
        places = [(left + width * x, top + height * y) for x, y in ((x0, y0), ((x0 + x1) / 2, (y0 + y1) / 2), (x1, y1))]
        page.mouse("mousePressed", *places[0], button="left", clickCount=1)
        for place in places[1:]:
            page.mouse("mouseMoved", *place, button="left", buttons=1)
        page.mouse("mouseReleased", *places[2], button="left", clickCount=1)

    drag(0.1, 0.1, 0.5, 0.5)
    page.wait("return history.state.box")
    page.answered()
    assert page.run("return history.state.box") == pytest.approx([32, 32, 128, 128], abs=3)
    inside = page.texts(".card .value")
    assert inside != whole
    drag(0.3, 0.3, 0.5, 0.4)  # moves it
    page.wait("return history.state.box[0] > 60")
    assert page.run("return history.state.box") == pytest.approx([96, 64, 128, 128], abs=3)
    drag(0.7, 0.6, 0.9, 0.9)  # takes hold of its corner
    page.wait("return history.state.box[2] > 150")
    assert page.run("return history.state.box") == pytest.approx([96, 64, 192, 224], abs=3)
    page.answered()
    page.click("#box-clear")
    page.wait("return history.state.box === null")
    page.answered()
    assert page.texts(".card .value") == whole


def test_a_box_means_the_picture_as_it_is_seen(page, shop, tmp_path):
    """A camera held upright writes rows sideways and says so: box and picture agree all the same."""
    upright = Image.open(shop.parent / "mug.jpg").crop((0, 0, 320, 200))
    turned = Image.Exif()
    turned[0x0112] = 6  # turn by 90 degrees clockwise to see it
    upright.save(tmp_path / "upright.png")
    upright.rotate(90, expand=True).save(tmp_path / "turned.png", exif=turned)
    values = []
    for name in ("upright.png", "turned.png"):
        page.open()
        page.upload(tmp_path / name)
        page.one("#box-make").send_keys(Keys.ENTER)
        page.press(Keys.ARROW_UP, Keys.ENTER)
        page.wait("return history.state.box")
        page.answered()
        assert page.run("return history.state.box") == [64, 32, 192, 120]
        values.append(page.texts(".card .value"))
    assert values[0] == values[1]


def test_a_box_by_the_keyboard_also_on_an_item(page):
    page.open(ITEM, until=ANSWERED)
    whole = page.texts(".card .value")
    page.one("#box-make").send_keys(Keys.ENTER)
    page.press(Keys.ARROW_LEFT, Keys.ARROW_UP, Keys.SHIFT + Keys.ARROW_RIGHT + Keys.NULL, Keys.ENTER)
    page.wait("return history.state.box")
    page.answered()
    side = page.run("return document.querySelector('#frame img').naturalWidth")
    assert [each / side for each in page.run("return history.state.box")] == pytest.approx(
        [0.16, 0.16, 0.64, 0.6], abs=0.01
    )
    assert page.texts(".card .value") != whole
    page.one(".box").send_keys(Keys.ESCAPE)
    page.wait("return history.state.box === null")
    page.answered()
    assert page.texts(".card .value") == whole
