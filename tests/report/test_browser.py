"""The page in a real browser: quiet, on its own, readable, and alive."""

import numpy as np
import pytest

from lookalike import report
from tests.fixtures.chromium import show
from tests.report.browser import check_quiet_alone_and_readable
from tests.report.conftest import HOSTILE, PATHS, labels, vectors


@pytest.fixture
def page(run):
    return run / "report.html"


def script(window, code):
    return window.execute_script(code)


def centre(window, selector):
    """The middle of an element on the screen, scrolled into view."""
    code = "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center'});"
    box = "const b = e.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2];"
    return window.execute_script(code + box, selector)


def mouse(window, kind, x, y, **more):
    event = {"type": kind, "x": x, "y": y} | more
    window.execute_cdp_cmd("Input.dispatchMouseEvent", event)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_quiet_alone_and_readable(window, page, width, scheme):
    check_quiet_alone_and_readable(window, page, width, scheme, least=300)


def test_a_page_without_images_is_quiet_too(window, tmp_path):
    np.savez(tmp_path / "test.npz", embeddings=vectors(0.5), labels=labels())
    window.get_log("browser")
    show(window, report.write(tmp_path), 390)
    window.find_element("id", "map-canvas").send_keys("\ue014")
    assert "row " in window.find_element("id", "map-panel").text
    assert window.get_log("browser") == []


def test_dark_is_dark(window, page):
    show(window, page, scheme="dark")
    assert script(window, "return getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"


def test_a_name_does_nothing_but_stand_there(window, page):
    show(window, page)
    words = script(window, "return document.body.innerText")
    assert HOSTILE[0] in words
    assert HOSTILE[1] in words
    assert script(window, "return document.querySelectorAll('img:not([src^=\"data:\"])').length") == 0
    assert script(window, "return document.title").startswith("Birds </title><script>")


def test_every_picture_has_words(window, page):
    show(window, page)
    assert script(window, "return document.querySelectorAll('img').length") > 100
    assert script(window, "return [...document.images].filter((i) => !i.alt || !i.naturalWidth).length") == 0
    lacking = "return [...document.querySelectorAll('svg, canvas:not([aria-hidden]), button, input, select')].filter("
    lacking += "(e) => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length)).length"
    assert script(window, lacking) == 0
    marks = "return [...document.querySelectorAll('.answers .hit .sign')].every((s) => s.textContent === '✓')"
    assert script(window, marks)
    assert script(window, "return document.querySelectorAll('.answers .miss .sign').length") > 0


@pytest.mark.parametrize("kind", ["by-class", "by-category"])
def test_tables_sort_by_number_and_by_name(window, page, kind):
    show(window, page)
    column = (
        f"return [...document.querySelectorAll('.{kind} tbody tr')].map((r) => r.cells[arguments[0]].dataset.value ?? "
        "r.cells[arguments[0]].textContent)"
    )
    buttons = window.find_elements("css selector", f".{kind} th button")
    assert [button.text for button in buttons][:3] == [kind.removeprefix("by-"), "map@r", "recall@1"]
    for _ in range(2):
        script(window, f"document.querySelectorAll('.{kind} th button')[2].click()")
        values = [float(value) for value in window.execute_script(column, 2)]
        state = buttons[2].find_element("xpath", "..").get_attribute("aria-sort")
        assert values == sorted(values, reverse=state == "descending")
    assert state == "descending"
    script(window, f"document.querySelectorAll('.{kind} th button')[0].click()")
    names = window.execute_script(column, 0)
    assert names.index(f"{'class' if kind == 'by-class' else 'kind'} {9 if kind == 'by-class' else 0}") < names.index(
        f"{'class' if kind == 'by-class' else 'kind'} {10 if kind == 'by-class' else 1}"
    )


def test_a_class_is_found_by_a_part_of_its_name(window, page):
    show(window, page)
    window.find_element("id", "find-class").send_keys("ONERROR")
    shown = "return [...document.querySelectorAll('.by-class tbody tr')].filter((r) => !r.hidden).length"
    assert script(window, shown) == 1


@pytest.mark.parametrize("allowed", [True, False])
def test_file_names_are_copied_whole(window, tmp_path, allowed):
    names = labels()
    names[20], names[30] = names[80], names[90]  # two wrong labels
    np.savez(tmp_path / "test.npz", embeddings=vectors(0.2), labels=names, paths=PATHS)
    show(window, report.write(tmp_path))
    permissions = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    window.execute_cdp_cmd("Browser.grantPermissions", permissions)
    if not allowed:
        script(window, "navigator.clipboard.writeText = () => Promise.reject()")
    assert script(window, "return getComputedStyle(document.querySelector('.path')).userSelect") == "all"
    script(window, "document.querySelector('.copy-all').click()")
    window.execute_async_script("setTimeout(arguments[0], 300)")
    if allowed:
        read = "const done = arguments[0]; navigator.clipboard.readText().then(done, (error) => done(String(error)))"
        text = window.execute_async_script(read)
    else:  # they stand in a field instead, selected
        text = script(
            window, "const a = document.activeElement; return a.value.slice(a.selectionStart, a.selectionEnd)"
        )
    assert text.split("\n") == [PATHS[20], PATHS[30]]


def test_hover_shows_an_image_and_its_class(window, page):
    show(window, page)
    x, y = centre(window, "#map-canvas")
    reach = [(x + dx, y + dy) for dx in range(-200, 201, 20) for dy in range(-120, 121, 20)]
    for place in reach:
        mouse(window, "mouseMoved", *place)
        if script(window, "return document.getElementById('map-canvas').dataset.shown") != "-1":
            break
    panel = window.find_element("id", "map-panel")
    assert panel.is_displayed()
    assert panel.text.splitlines()[-1] in PATHS
    assert script(window, "return document.querySelector('#map-panel i').style.backgroundImage").startswith(
        'url("data:'
    )
    mouse(window, "mouseMoved", 5, 5)
    assert not panel.is_displayed()


def scale(window) -> float:
    return float(script(window, "return document.getElementById('map-canvas').dataset.scale"))


def test_wheel_buttons_keys_and_drag_move_the_map(window, page):
    show(window, page)
    x, y = centre(window, "#map-canvas")
    window.execute_async_script("setTimeout(arguments[0], 400)")  # a wheel right after scrolling scrolls on
    before = script(window, "return scrollY")
    mouse(window, "mouseWheel", x, y, deltaX=0, deltaY=-300)
    window.execute_async_script("setTimeout(arguments[0], 100)")
    wheeled = scale(window)
    assert wheeled > 1.5
    assert script(window, "return scrollY") == before
    script(window, "document.getElementById('map-in').click()")
    assert scale(window) > wheeled
    for _ in range(3):
        script(window, "document.getElementById('map-in').click()")
    assert int(script(window, "return document.getElementById('map-canvas').dataset.pictures")) > 0
    script(window, "document.getElementById('map-reset').click()")
    assert scale(window) == 1
    canvas = window.find_element("id", "map-canvas")
    canvas.send_keys("+")
    assert scale(window) == pytest.approx(1.6)
    picture = "return document.getElementById('map-canvas').toDataURL()"
    old = script(window, picture)
    mouse(window, "mousePressed", x, y, button="left", clickCount=1)
    mouse(window, "mouseMoved", x + 60, y + 40, button="left", buttons=1)
    mouse(window, "mouseReleased", x + 60, y + 40, button="left", clickCount=1)
    assert script(window, picture) != old


def test_arrow_keys_go_from_image_to_image(window, page):
    show(window, page)
    canvas = window.find_element("id", "map-canvas")
    shown = set()
    for key in ("\ue014", "\ue015", "\ue012"):  # right, down, left
        canvas.send_keys(key)
        shown.add(script(window, "return document.getElementById('map-canvas').dataset.shown"))
    assert "-1" not in shown
    assert len(shown) > 1
    assert window.find_element("id", "map-panel").text.splitlines()[-1] in PATHS


def test_fingers_pinch_and_tap(window, page):
    show(window, page, 390)
    x, y = centre(window, "#map-canvas")
    touch = {"enabled": True, "maxTouchPoints": 2}
    window.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", touch)

    def send(kind, *points):
        places = [{"x": px, "y": py, "id": number} for number, (px, py) in enumerate(points)]
        window.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

    send("touchStart", (x - 20, y), (x + 20, y))
    for wide in (30, 45, 60, 80):
        send("touchMove", (x - wide, y), (x + wide, y))
    send("touchEnd")
    assert scale(window) > 2
    script(window, "document.getElementById('map-reset').click()")
    for place in [(x + dx, y + dy) for dx in range(-120, 121, 30) for dy in range(-120, 121, 30)]:
        send("touchStart", place)
        send("touchEnd")
        if script(window, "return document.getElementById('map-canvas').dataset.shown") != "-1":
            break
    assert window.find_element("id", "map-panel").is_displayed()
    window.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def test_the_map_can_show_categories(window, page):
    show(window, page)
    script(
        window,
        "const s = document.getElementById('map-colour'); s.value = 'category'; s.dispatchEvent(new Event('change'))",
    )
    assert window.find_element("id", "map-legend").text.split("\n") == ["kind 0", "kind 1", "kind 2"]
