"""Searching on the page as people do, in a real browser against a real server."""

from contextlib import contextmanager
from io import BytesIO
from urllib.parse import quote

import pytest
from PIL import Image
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from lookalike.search import Index
from lookalike.search.calibration.evidence import Rule
from tests.search.serve.page.drawn_shop import EACH, HOSTILE, NAMES, calibrate
from tests.search.serve.page.opened import ANSWERED

ALL = EACH * len(NAMES) + 1
ITEM_ID = "shop/alva-mug-0.jpg"
ITEM = f"/?item={quote(ITEM_ID, safe='')}"
MARKS = """
return [...document.querySelectorAll(".card")].map(({ classList }) =>
  classList.contains("is-right") ? "y" : classList.contains("is-wrong") ? "n" : "-").join("")"""
FOCUS = "return Number(document.activeElement.closest('.card')?.dataset.place ?? -1)"


def test_the_start_shows_the_index_and_something_to_try(page):
    page.open()
    assert f"{ALL} items in {len(NAMES) + 1} classes" in page.text("#about")
    assert sorted(page.texts("#classes b")) == sorted([*NAMES, HOSTILE])
    assert len(page.texts("#newest b")) == 12
    assert page.texts("#start .lost") == []
    page.click("#newest .tile")
    page.answered()
    assert len(page.labels()) == 12
    page.window.back()
    page.wait("return !document.getElementById('start').hidden")
    page.click(".try")
    page.answered()
    assert page.labels()


def test_a_class_shows_its_items(page):
    page.open()
    place = page.texts("#classes b").index(NAMES[1])
    page.click("#classes .tile", place)
    page.answered()
    assert set(page.labels()) == {NAMES[1]}
    assert page.texts("#chips button") == [f"label: {NAMES[1]} ✕"]
    page.click("#chips button")
    page.wait("return document.querySelectorAll('.card').length === 12")


def test_a_photo_is_answered_with_a_verdict_and_its_meaning(page, shop):
    page.open()
    page.upload(shop.parent / "lamp.jpg")
    assert page.text(".verdict .badge") == "sure"
    assert page.text(".verdict .chance") == "99% chance"  # 0.998, and nobody has measured more than 99%
    assert "At least 90% of the answers called sure are right." in page.text(".verdict")
    assert page.texts(".card .badge") == ["sure"]
    values = [float(text.removeprefix("Similarity ")) for text in page.texts(".card .value")]
    assert values == sorted(values, reverse=True)
    shares = page.run(
        "return [...document.querySelectorAll('.card .fill')].map((e) => e.offsetWidth / e.parentElement.offsetWidth)"
    )
    assert shares == pytest.approx(values, abs=0.02)
    assert f"12 hits among {ALL} items in " in page.text("#summary")
    assert page.run("return document.getElementById('summary').getAttribute('aria-live')") == "polite"
    assert f". sure: {page.labels()[0]}." in page.run("return document.getElementById('summary').textContent")
    page.click("#more")
    page.wait(f"return document.querySelectorAll('.card').length === {ALL}")
    page.wait(f"{FOCUS} === 12")


ANSWERS = (  # match; of the label, and of one of two, where the class is there; what the page says
    (0.999, 0.7, 0.9, "maybe", "Probably {label}", "About 70% of answers like this one are right."),
    (0.999, 0.4, 0.7, "maybe", "{label} or {second}", "one of the two in about 70% of such answers, the first in 40%."),
    (0.3, 0.5, 0.5, "maybe", "Something like {label}, not sure which", "About 15% of answers like this one are right."),
    (0.05, 0.5, 0.5, "unknown", "Nothing like it here", "At most 5% of pictures whose class is in the index look as "),
    (None, None, None, None, "", "Nobody has measured yet"),
)


def test_the_page_says_what_the_answer_says(page, shop, server):
    """All words there are but "sure", in the words of the API; a badge on the card unless nothing is like it."""
    with calibrated(shop, server) as change:
        for match, right, either, verdict, words, meaning in ANSWERS:
            change(None if match is None else {"match": match, "right": right, "either": either})
            said = server.wait_for(
                lambda meaning=meaning: meaning in (found := asked(server))["meaning"] and found, words
            )
            page.open(ITEM, until=ANSWERED)
            assert page.texts(".verdict .badge") == [verdict] * bool(verdict)
            assert page.texts(".verdict b") == [words.format(**said)] * bool(verdict)
            assert said["words"].lower() == words.format(**said).lower()
            assert said["meaning"] in page.text(".verdict")
            assert page.texts(".verdict .chance") == []
            assert page.texts(".card .badge") == [verdict] * (verdict == "maybe")


def test_no_card_has_the_badge_of_a_hit_that_is_not_shown(page, shop, server):
    """A label follows from twenty hits, and twelve are shown."""
    with calibrated(shop, server) as change:
        change({"right": 0.7, "rule": Rule(0.0, 99.0)})  # the smallest class, however far it is
        server.wait_for(lambda: asked(server)["label"] == HOSTILE, "another rule")
        ids = [
            item["item"]["id"] for item in server.json("POST", "/v1/search", {"item": ITEM_ID, "k": 50}).json["hits"]
        ]
        far = next(id_ for id_ in ids if place_of(server, id_, HOSTILE) >= 12)
        page.open(f"/?item={quote(far, safe='')}", until=ANSWERED)
        assert page.text(".verdict b") == f"Probably {HOSTILE}"
        assert HOSTILE not in page.labels()
        assert page.texts(".card .badge") == []


@contextmanager
def calibrated(shop, server):
    """What changes the calibration (None: there is none), and changes it back at the end."""
    index = Index.open(shop)

    def change(chances):
        index.store.documents.write("calibration", None) if chances is None else calibrate(index, **chances)

    try:
        yield change
    finally:
        calibrate(index)
        index.close()
    server.wait_for(lambda: asked(server)["verdict"] == "sure", "the index as it was")


def asked(server):
    return server.json("POST", "/v1/search", {"item": ITEM_ID}).json


def place_of(server, id_, label):
    hits = server.json("POST", "/v1/search", {"item": id_, "k": 50}).json["hits"]
    return next((place for place, hit in enumerate(hits) if hit["item"]["label"] == label), -1)


def test_back_and_forward_also_find_photos(page, shop):
    page.open()
    page.upload(shop.parent / "lamp.jpg")
    first = page.texts(".card .value")
    name = page.labels()[3]
    page.click(".card .picture", 3)
    page.wait("return document.title.startsWith(arguments[0])", f"Like {name}")
    page.answered()
    assert page.texts(".card .value") != first
    page.window.back()
    page.wait("return document.title.startsWith('Like a photo')")
    page.wait("return document.querySelector('#frame img').alt === 'Query: lamp.jpg'")
    page.answered()
    assert page.texts(".card .value") == first
    page.window.forward()
    page.wait("return location.search.startsWith('?item=')")
    page.answered()
    assert page.texts(".card .value") != first


def chair_is_asked(page):
    page.wait("return document.querySelector('.card:not(.skeleton)')")
    page.answered()
    return page.one("#frame img").get_attribute("alt")


def test_a_photo_is_dropped_anywhere(page, shop):
    page.open()
    data = {"items": [], "files": [str(shop.parent / "chair.jpg")], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        event = {"type": kind, "x": 640, "y": 700, "data": data}
        page.window.execute_cdp_cmd("Input.dispatchDragEvent", event)
        assert page.one("#overlay").is_displayed() == (kind != "drop")
    assert chair_is_asked(page) == "Query: chair.jpg"
    assert page.window.get_log("browser") == []


def test_a_photo_is_pasted(page, shop):
    page.open()
    permissions = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": page.address}
    page.window.execute_cdp_cmd("Browser.grantPermissions", permissions)
    page.window.execute_cdp_cmd("Page.bringToFront", {})
    file = BytesIO()
    Image.open(shop.parent / "chair.jpg").save(file, "PNG")
    write = """
        const png = new Blob([new Uint8Array(arguments[0])], { type: "image/png" });
        const done = (error = "") => arguments[1](String(error));
        navigator.clipboard.write([new ClipboardItem({ "image/png": png })]).then(() => done(), done);
    """
    assert page.window.execute_async_script(write, list(file.getvalue())) == ""
    key = {"type": "keyDown", "key": "v", "code": "KeyV", "modifiers": 2, "commands": ["paste"]}
    page.window.execute_cdp_cmd("Input.dispatchKeyEvent", key)
    assert chair_is_asked(page) == "Query: image.png"


def test_filters_come_from_the_columns_and_go_into_the_address(page):
    page.open(ITEM, until=ANSWERED)
    names = page.texts("#filter-form summary")
    assert names == ["kind", "brand", "colour", "price", "label"]  # a name that a condition cannot say is left out
    tick = "return [...document.querySelectorAll('.tick')].findIndex((e) => e.textContent.startsWith(arguments[0]))"
    for kind in ("lamp", "chair"):
        page.click(".tick input", page.run(tick, kind))
        page.wait("return document.getElementById('chips').textContent.includes(arguments[0])", kind)
        page.answered()
    assert set(page.texts(".card .facts div:first-child dd")) == {"lamp", "chair"}
    assert "where=kind" in page.run("return location.search")
    page.run("document.querySelector('#filter-form details[data-column=price]').open = true")
    field = page.one('.range input[aria-label="At most, price"]')
    assert field.get_attribute("placeholder") == "165"
    field.send_keys("100", Keys.TAB)
    page.wait("return document.querySelectorAll('#chips li').length === 3")
    page.answered()
    assert set(page.labels()) == {"Dome lamp"}
    page.window.back()
    page.wait("return document.querySelectorAll('#chips li').length === 1")
    page.answered()
    assert set(page.labels()) == {"Dome lamp", "Ink chair"}
    page.window.forward()
    page.wait("return document.querySelectorAll('#chips li').length === 3")
    page.window.refresh()
    page.wait(ANSWERED)
    assert set(page.labels()) == {"Dome lamp"}


def test_grouping_gives_the_best_of_each(page):
    page.open(ITEM, until=ANSWERED)
    Select(page.one("#group")).select_by_visible_text("label")
    page.wait("return document.querySelectorAll('.card').length < 12")
    assert sorted(page.labels()) == sorted([*NAMES, HOSTILE])
    assert "things by label among" in page.text("#summary")
    page.open(f"{ITEM}&group=brand", until=ANSWERED)
    assert page.run("return document.getElementById('group').value") == "brand"
    assert len(page.labels()) == 4


def test_examples_for_and_against(page, shop):
    page.open()
    page.upload(shop.parent / "mug.jpg")
    page.click(".card .plus", 2)
    page.wait("return document.querySelectorAll('.examples li').length === 2")
    page.answered()
    assert len(page.texts(".badge")) == 2
    page.upload(shop.parent / "lamp.jpg", field="#add-photo")
    page.wait("return document.querySelectorAll('.examples li').length === 3")
    page.answered()
    assert page.texts(".examples b") == ["Like", "Like", "Like"]
    both = page.texts(".card .value")
    page.click(".examples li:nth-child(3) button[title*='against']")
    page.wait("return document.querySelectorAll('.examples .not').length === 1")
    page.answered()
    assert page.texts(".badge") == []
    assert "this search also says what is not" in page.text("#verdict")
    assert page.texts(".card .value") != both
    for _ in range(2):
        page.click(".examples li:first-child button[title='Leave it out']")
        page.wait("return document.activeElement.closest('.examples, .button') !== null")
        page.answered()
    assert "One example has to say what it looks like." in page.text("#toast")
    assert page.texts(".examples b") == ["Like", "Not like"]


def test_marks_are_kept_and_can_be_taken_back(page, shop, server):
    def kept():
        return server("GET", "/v1/index").json["feedback"]

    page.open()
    before = kept()
    page.upload(shop.parent / "chair.jpg")
    page.click(".card .right", 0)
    page.wait(f"{MARKS} === 'y' + '-'.repeat(11)")
    page.click(".card .wrong", 1)
    page.wait(f"{MARKS} === 'yn' + '-'.repeat(10)")
    assert page.run("return document.querySelector('.card .right').ariaPressed") == "true"
    server.wait_for(lambda: kept() == before + 2, "two marks")
    page.click("#toast button")  # undo
    page.wait(f"{MARKS} === 'y' + '-'.repeat(11)")
    page.click(".card .wrong", 0)  # another opinion
    page.wait(f"{MARKS} === 'n' + '-'.repeat(11)")
    server.wait_for(lambda: kept() == before + 1, "one mark")
    page.click(".card .wrong", 0)  # the same again
    page.wait(f"{MARKS} === '-'.repeat(12)")
    server.wait_for(lambda: kept() == before, "no mark")


def test_marks_are_there_again_after_a_reload(page):
    page.open(ITEM, until=ANSWERED)
    page.run("arguments[0].value = 'Ann'; arguments[0].dispatchEvent(new Event('change'))", page.one("#signature"))
    page.click(".card .wrong", 2)
    page.wait(f"{MARKS} === '--n' + '-'.repeat(9)")
    page.window.refresh()
    page.wait(f"{MARKS} === '--n' + '-'.repeat(9)")
    assert page.text(".is-wrong .mark").startswith("Marked wrong by Ann, ")
    page.click(".card .wrong", 2)  # anybody may take it back
    page.wait(f"{MARKS} === '-'.repeat(12)")
    page.run("localStorage.clear()")


def test_a_part_of_a_name_finds_classes(page):
    page.open()
    page.one("#find-field").send_keys("MUG", Keys.ENTER)
    page.wait("return document.querySelectorAll('#classes .tile').length === 2")
    assert sorted(page.texts("#classes b")) == ["Alva mug", "Tide mug"]
    assert "2 classes have “MUG” in the name" in page.text("#classes-note")
    page.one("#find-field").clear()
    page.one("#find-field").send_keys("no such thing", Keys.ENTER)
    page.wait("return document.getElementById('notice').innerText.includes('Nothing has that name')")


def test_escape_keeps_the_photo(page, shop):
    page.open()
    page.upload(shop.parent / "lamp.jpg")
    first = page.texts(".card .value")
    page.one("body").send_keys(Keys.ESCAPE)
    page.wait("return !document.getElementById('start').hidden")
    assert "Your photo is still here" in page.text("#return")
    page.click("#return button")
    page.answered()
    assert page.texts(".card .value") == first


def test_everything_by_the_keyboard(page):
    page.open()
    page.press("/")
    assert page.run("return document.activeElement.id") == "find-field"
    page.press(NAMES[0], Keys.ENTER)
    page.wait("return document.querySelector('.card:not(.skeleton)')")
    page.answered()
    page.wait(f"{FOCUS} === 0")
    page.press(Keys.TAB)
    assert page.run("return document.activeElement.className") == "tool right"
    page.one("#chips button").send_keys(Keys.ENTER)
    page.wait("return document.querySelectorAll('.card').length === 12")
    page.answered()
    page.one(".card .picture").send_keys(Keys.ARROW_RIGHT)
    page.press(Keys.ARROW_DOWN)
    assert page.run(FOCUS) == 5  # four in a row
    page.press(Keys.ARROW_UP, Keys.ARROW_LEFT, Keys.END)
    assert page.run(FOCUS) == 11
    page.press("y")
    page.wait(f"{MARKS} === '-'.repeat(11) + 'y'")
    page.press("n")
    page.wait(f"{MARKS} === '-'.repeat(11) + 'n'")
    page.press("u")
    page.wait(f"{MARKS} === '-'.repeat(12)")
    name = page.labels()[11]
    page.press(Keys.ENTER)
    page.wait("return document.title.startsWith(arguments[0])", f"Like {name}")
    page.wait(f"{FOCUS} === 0")
    page.press(Keys.ESCAPE)
    page.wait("return !document.getElementById('start').hidden")
    assert page.run("return location.search") == ""
