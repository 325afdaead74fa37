"""Takes pictures of the guides: `python -m scripts.draw_serve` draws a shop, serves it and photographs the page.

It needs the extras `serve`, `pretrained` and `test`, and Chromium.
"""

import base64
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from lookalike.models import Architecture, Model
from lookalike.search import Index
from lookalike.search.items import Item
from lookalike.search.quality import Quality
from tests.fixtures.chromium import PATIENCE, chromium, lacking
from tests.fixtures.shop import PRODUCTS, draw, photo

FOLDER = Path(__file__).parents[1] / "docs" / "pictures" / "serve"
CLASSES = 10_000
ANSWERED = (
    "return document.querySelector('.card:not(.skeleton)') && document.getElementById('answers').ariaBusy === 'false'"
)
LOADED = """
const seen = [...document.images].filter((e) => e.checkVisibility() && e.getBoundingClientRect().top < innerHeight);
return seen.every((e) => e.naturalWidth)"""


def make_index(folder: Path) -> Path:
    """Sixteen products, five photos each, calibrated with photos that are not in it."""
    everything = range(len(PRODUCTS))
    model = Model.create(Architecture("efficientnet_lite0", {}, dim=None), weights="pretrained")
    index = Index.create(folder / "shop.index", model)
    index.add(draw(folder / "photos", everything, range(5)))
    index.calibrate(draw(folder / "held_out", everything, range(50, 53)), precision=0.9, plain=True)
    index.close()
    return folder / "shop.index"


def make_large_index(folder: Path) -> Path:
    """Ten thousand classes of one photo each; nobody asks for the nearest, so the vectors are random."""
    vectors = np.random.default_rng(0).normal(size=(CLASSES, 8)).astype(np.float32)
    index = Index.create(folder / "catalogue.index", dim=8)
    pictures = [BytesIO() for _ in PRODUCTS]
    for product, file in enumerate(pictures):
        photo(product, 0).save(file, "JPEG")
    items = [Item(f"article/{number + 1}", label=f"Article {number + 1}") for number in range(CLASSES)]
    drawn = {item.id: pictures[number % len(pictures)].getvalue() for number, item in enumerate(items)}
    index.store.put(items, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), drawn)
    index.close()
    return folder / "catalogue.index"


def make_things(folder: Path) -> Path:
    """The same photos, all of one product together, ranked by their best two."""
    model = Model.create(Architecture("efficientnet_lite0", {}, dim=None), weights="pretrained")
    (folder / "things").mkdir()
    index = Index.create(folder / "things" / "shop.index", model)
    index.add(folder / "photos" / "shop.csv", thing="label")
    index.calibrate(folder / "held_out" / "shop.csv", precision=0.9, plain=True)
    index.store.documents.write("quality", json.dumps(Quality(pooled=2).as_json()))
    index.close()
    return folder / "things" / "shop.index"


@contextmanager
def served(verb: str, place: Path, *options: str) -> Iterator[str]:
    """The address of a server of an index, or of the review of a folder."""
    words = [sys.executable, "-m", "lookalike", verb, place.name, "--port", "0", *options]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=place.parent) as server:
        try:
            assert server.stderr is not None
            address = next(match[0] for line in server.stderr if (match := re.search(r"http://[^ ,]+", line)))
            yield address
        finally:
            server.terminate()


def wait(window: Any, code: str) -> None:
    deadline = time.monotonic() + 4 * PATIENCE
    while not window.execute_script(code):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the page does not say yes to: {code}")
        time.sleep(0.1)


def resize(window: Any, width: int, height: int) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def open_page(window: Any, address: str, width: int, height: int, scheme: str, shown: str = "start") -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    resize(window, width, height)
    window.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": width < 500})
    window.get("about:blank")
    window.get(address)
    wait(window, f"return !document.getElementById('{shown}').hidden")


def save(window: Any, place: Path) -> None:
    window.execute_script("document.activeElement.blur()")
    wait(window, LOADED)
    time.sleep(0.5)  # what fades has faded
    shot = window.execute_cdp_cmd("Page.captureScreenshot", {})
    image = Image.open(BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    image.save(place, optimize=True)


def mark(window: Any) -> None:
    """Ann says of three hits whether they are right."""
    window.execute_script(
        "const name = document.getElementById('signature'); name.value = 'Ann';name.dispatchEvent(new Event('change'))"
    )
    for count, (place, kind) in enumerate(((0, "right"), (1, "right"), (5, "wrong")), start=1):
        window.find_elements("css selector", f".card .{kind}")[place].click()
        wait(window, f"return document.querySelectorAll('.card .mark:not([hidden])').length === {count}")
    window.execute_script("document.getElementById('toast').hidden = true; scrollTo(0, 0)")


def main() -> None:
    if lacking():
        sys.exit(lacking())
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, chromium() as window:
        folder = Path(name)
        place = make_index(folder)
        photo(4, 51).save(folder / "lamp.jpg")
        with served("serve", place, "--no-log") as address:
            for _ in range(2):  # the first one also loads the network
                open_page(window, address, 1280, 760, "light")
                window.find_element("css selector", "#start .choose").send_keys(str(folder / "lamp.jpg"))
                wait(window, ANSWERED)
            save(window, FOLDER / "results.png")
            window.find_elements("css selector", ".card .why")[1].click()
            wait(window, "return document.getElementById('why').open")
            save(window, FOLDER / "why.png")
            window.find_element("css selector", "#why button").click()
            resize(window, 1280, 1120)
            mark(window)
            save(window, FOLDER / "marked.png")
            open_page(window, address, 390, 844, "light")
            window.find_element("css selector", "#start .choose").send_keys(str(folder / "lamp.jpg"))
            wait(window, f"{ANSWERED} && document.querySelector('.is-right')")
            window.execute_script("document.querySelector('.verdict').scrollIntoView()")
            save(window, FOLDER / "phone-marks.png")
            open_page(window, address, 390, 844, "dark")
            save(window, FOLDER / "phone.png")
        with served("serve", make_things(folder), "--no-log") as address:
            open_page(window, address, 1280, 760, "light")
            window.find_element("css selector", "#start .choose").send_keys(str(folder / "lamp.jpg"))
            wait(window, ANSWERED)
            save(window, FOLDER / "things.png")
        with served("serve", make_large_index(folder), "--no-log") as address:
            open_page(window, address, 1280, 760, "light")
            window.find_element("css selector", "#find-field").send_keys("99\n")
            wait(window, "return document.getElementById('classes-note').textContent.includes('99')")
            save(window, FOLDER / "classes.png")


if __name__ == "__main__":
    main()
