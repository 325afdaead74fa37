"""What the page looks like and how it is read: colours, widths, names for screen readers, hostile names."""

import pytest
from selenium.webdriver.common.keys import Keys

from tests.search.serve.page.drawn_shop import COLUMN, HOSTILE
from tests.search.serve.page.opened import ANSWERED

ITEM = "/?item=shop%2Falva-mug-0.jpg"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_start_and_results_are_quiet_alone_and_readable(page, shop, width, scheme):
    page.open(width=width, scheme=scheme)
    page.check(least=30)
    page.upload(shop.parent / "mug.jpg")
    assert page.labels()
    page.check(least=60)
    page.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.click(".card .right", 0 if width == 1280 else 2)  # marks stay: the second window finds that of the first
    page.wait("return document.querySelector('.is-right') && !document.getElementById('toast').hidden")
    page.click(".card .minus", 1)
    page.wait("return document.querySelectorAll('.examples li').length === 2")
    page.answered()
    page.check(least=70)
    page.open(f"{ITEM}&where=price%3C1", width=width, scheme=scheme, until=ANSWERED)
    assert "Nothing was found" in page.text("#empty")
    page.check(least=30)


def test_one_column_and_a_camera_on_a_phone(page, shop):
    page.open(width=390)
    camera = page.one("#start input[capture]")
    assert camera.get_attribute("accept") == "image/*"
    assert page.one("#start .camera").is_displayed()
    page.upload(shop.parent / "lamp.jpg", field="#start input[capture]")
    assert len(set(page.run("return [...document.querySelectorAll('.card')].map((e) => e.offsetLeft)"))) == 1
    assert not page.one("#filters").get_attribute("open")
    sides = "return [...document.querySelectorAll('.card .tool')].map((e) => Math.min(e.offsetWidth, e.offsetHeight))"
    assert min(page.run(sides)) >= 44


def test_dark_is_dark(page):
    for scheme, dark in (("dark", True), ("light", False)):
        page.open(scheme=scheme)
        colour = page.run("return getComputedStyle(document.body).backgroundColor")
        assert (int(colour.split("(")[1].split(",")[0]) < 60) == dark


PAIRS = """
const on = { paper: "ink soft accent", surface: "ink soft accent sure maybe unknown wrong", sunk: "ink soft",
  wash: "ink accent",
  accent: "on-accent", ink: "paper", "sure-wash": "ink sure", "maybe-wash": "ink maybe", "unknown-wash": "ink unknown",
  "wrong-wash": "wrong" };
const probe = document.body.appendChild(document.createElement("i"));
const rgb = (name) => {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color.match(/[\\d.]+/g).map(Number);
};
const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = (c) => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
return Object.entries(on).flatMap(([ground, inks]) => inks.split(" ").map((ink) => {
  const [a, b] = [light(rgb(ground)), light(rgb(ink))].sort((p, q) => q - p);
  return [ink, ground, (a + 0.05) / (b + 0.05)];
}));
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_ink_is_legible_on_every_ground_it_stands_on(page, scheme):
    page.open(scheme=scheme)
    pairs = page.run(PAIRS)
    assert len(pairs) == 23
    assert [pair for pair in pairs if pair[2] < 4.5] == []


def test_hostile_names_are_text(page):
    page.open()
    place = page.texts("#classes b").index(HOSTILE)
    page.click("#classes .tile", place)
    page.wait("return document.title.startsWith('Like <img')")  # alone in its class, it is asked for what is like it
    page.answered()
    page.open(f"{ITEM}&group=label&where=price%3C10", until=ANSWERED)
    assert page.labels() == [HOSTILE]
    facts = page.texts(".card .facts dt")
    assert facts == ["kind", "brand", "colour"]
    page.click(".card .picture")
    page.wait("return document.title.startsWith('Like <img')")
    page.answered()
    assert HOSTILE in page.one("#frame img").get_attribute("alt")
    assert COLUMN in page.texts("#group option")
    page.open(f"{ITEM}&where={HOSTILE}%3D1", until="return !document.getElementById('notice').hidden")
    assert page.run("return document.querySelectorAll('img[src=x], main script, main svg[onload]').length") == 0


def test_the_landmarks_and_the_order_of_headings(page):
    page.open(ITEM, until=ANSWERED)
    for landmark in ("header", "main", "footer", "main aside[aria-label]", "[role=search]"):
        assert page.run("return document.querySelectorAll(arguments[0]).length", landmark) >= 1, landmark
    levels = page.run(
        "return [...document.querySelectorAll('h1, h2, h3')].filter((e) => e.checkVisibility()).map((e) => e.tagName)"
    )
    assert levels.count("H1") == 1
    assert page.run("return document.getElementById('notice').getAttribute('role')") == "alert"
    page.press(Keys.TAB)
    assert page.run("return getComputedStyle(document.activeElement).outlineStyle") != "none"
