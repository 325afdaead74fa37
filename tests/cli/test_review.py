"""From a folder without labels to a fitted model, by the keyboard of a real browser; and how its page reads."""

import shutil
from collections import Counter

import pytest
from selenium.webdriver.common.keys import Keys

from lookalike import data
from lookalike.discover import journal
from lookalike.discover.table import read
from tests.cli.conftest import SHORT
from tests.search.serve.client import Server
from tests.search.serve.page.opened import Page

SHOWN = "return document.querySelector('.strip .photo') !== null"
FOUND = "return [...document.querySelectorAll('.strip')].filter((e) => e.ariaLabel.startsWith('group ')).length"
MARKUP = """'"><img src=x onerror=document.body.remove()>"""
LARGE = "[...document.querySelectorAll('#look[open] img')].filter((e) => e.naturalWidth).map((e) => e.src)"
CHOSEN = "return [...document.querySelectorAll('.photo[aria-pressed=true]')].map((e) => e.dataset.row)"
FOCUS = "return document.activeElement.closest('.strip')?.ariaLabel ?? ''"


@pytest.fixture
def flat(photos, tmp_path):
    """All photos in one folder; their names say their class, which nobody reads but this test, and hold markup."""
    place = tmp_path / "flat"
    place.mkdir()
    for file in photos.rglob("*.png"):
        shutil.copy(file, place / f"{file.parent.name} {MARKUP} {file.name}")
    return place


@pytest.fixture
def page(window, flat, finished):
    with Server(flat, ("--model", str(finished[0] / "model")), verb="review") as server:
        opened = Page(window, f"http://127.0.0.1:{server.port}")
        opened.open(until=SHOWN)
        yield opened


def kind(name):
    return name[: len("class 00")]


def press(page, *keys):
    """Keys of which the last one says a word: until it is kept, and shown."""
    version = int(page.one("#review").get_attribute("data-version"))
    page.press(*keys)
    page.wait(f"return document.getElementById('review').dataset.version === '{version + 1}'")


def words(flat):
    return [line["do"] for line in journal.entries(flat.with_name("flat.review") / "answers.jsonl")]


def answer_questions(page, count):
    for number in range(1, count + 1):
        left, right = page.run("return [...document.querySelectorAll('#pair img')].map((e) => e.alt)")
        press(page, "y" if kind(left) == kind(right) else "n")
        assert page.text("#brought").startswith(f"{number} question")


def name_groups(page):
    """Name every group after most of its photos, others are taken out first; the focus goes to the next group."""
    while page.run(FOUND):
        assert page.run(FOCUS).startswith("group ")
        photos = page.window.find_elements("css selector", ".strip:first-child .photo")
        kinds = [kind(photo.get_attribute("title")) for photo in photos]
        most = Counter(kinds).most_common(1)[0][0]
        for photo in [photo for photo, own in zip(photos, kinds, strict=True) if own != most]:
            photo.click()
        if set(kinds) != {most}:
            press(page, "x")
        press(page, Keys.ENTER, f"{most} {MARKUP}", Keys.ENTER)


def test_from_a_folder_without_labels_to_a_model(page, flat, lookalike):
    page.check(least=30)
    answer_questions(page, 3)
    name_groups(page)
    page.check_readable(least=30)
    table = flat.with_name("flat.review") / "labels.csv"
    named = [row for row in read(table) if row.label]
    assert len(named) > 50
    assert all(f"{kind(row.path.rsplit('/', 1)[1])} {MARKUP}" == row.label for row in named)
    assert page.run("return document.querySelector('[src=x], [onerror]')") is None  # a name is a text everywhere
    assert any(MARKUP in text for text in page.texts("h3"))
    fit, again = page.text("#command").splitlines()
    assert (fit, again) == (f"lookalike fit {table} --out run-1", f"lookalike review {flat} --model run-1/model")
    fitted = lookalike("fit", table, "--out", flat.with_name("run"), *SHORT, "--set", "sampler.batch_size=4")
    assert fitted.code == 0, fitted.error
    assert (flat.with_name("run") / "model").is_dir()
    assert len(data.load(str(table))) == len(named)


def test_photos_are_viewed_large(page):
    second = page.run("return document.querySelectorAll('.strip:first-child .photo')[1].dataset.row")
    page.press("v", Keys.ARROW_RIGHT, Keys.SPACE)
    page.wait(f"const shown = {LARGE}; return shown.length === 1 && shown[0].includes('/photos/{second}?of=')")
    page.check(least=30)
    page.press(Keys.ESCAPE)
    assert page.run(CHOSEN) == [second]
    page.wait("return document.activeElement.dataset.row === arguments[0]", second)
    page.press(Keys.ESCAPE)
    page.click("#pair .view")
    page.wait(f"return {LARGE}.length === 2")
    press(page, "n")
    assert not page.run("return document.getElementById('look').open")


def test_split_merge_not_sure_the_slider_and_undo(page, flat):
    before = page.texts(".strip h3")
    page.run("window.real = fetch; window.fetch = () => Promise.reject(new TypeError('gone'))")
    page.press(Keys.ARROW_DOWN, "s")
    page.wait("return !document.getElementById('notice').hidden")
    assert page.text("#toast").startswith("Not kept: The server does not answer.")
    page.run("window.fetch = window.real; document.querySelector('#notice button').click()")
    page.wait("return document.getElementById('review').dataset.version === '1'")  # the same word, once more
    assert len(page.texts(".strip h3")) == len(before) + 1
    press(page, "m", Keys.ARROW_DOWN, "m")  # the two parts are beside each other
    assert page.texts(".strip h3") == before
    assert page.run(FOCUS).startswith(before[1])
    page.press(Keys.ARROW_UP)
    press(page, "0")
    assert page.texts(".state.aside") == ["not sure"]
    page.run("const e = document.getElementById('level'); e.value = 0; e.dispatchEvent(new Event('change'))")
    page.wait("return document.getElementById('review').dataset.version === '4'")
    assert len(page.texts(".strip h3")) < len(before)
    assert words(flat) == ["split", "same", "aside", "level"]
    page.press("?")
    assert page.run("return document.getElementById('help').open")
    page.press(Keys.ESCAPE)
    for _ in range(4):
        assert not page.run("return document.getElementById('undo').disabled")
        press(page, "u")
    assert page.run("return document.getElementById('undo').disabled")
    assert page.run(FOCUS).startswith(before[1])  # where the first word was taken back
    assert page.texts(".strip h3") == before
    assert words(flat)[4:] == ["undo"] * 4


def test_quiet_alone_and_readable_on_a_phone(page):
    for scheme in ("light", "dark"):
        page.open(width=390, scheme=scheme, until=SHOWN)
        page.check(least=30)
    sides = "return [...document.querySelectorAll('.strip button, #words button')].map((e) => e.offsetHeight)"
    assert min(page.run(sides)) >= 44
    levels = page.run("return [...document.querySelectorAll('h1, h2, h3')].map((e) => e.tagName)")
    assert levels.count("H1") == 1
