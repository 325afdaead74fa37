"""Takes the pictures of docs/discover.md: `python -m scripts.draw_review` reviews a folder of drawn photos.

It needs the extras `serve`, `pretrained` and `test`, and Chromium.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from selenium.webdriver.common.keys import Keys

from scripts.draw_serve import open_page, save, served, wait
from tests.fixtures.chromium import chromium, lacking
from tests.fixtures.shop import PRODUCTS, photo

FOLDER = Path(__file__).parents[1] / "docs" / "pictures" / "review"
EACH = 7  # photos of a product


def make_photos(folder: Path) -> Path:
    """A folder without labels, with names as a camera gives them."""
    folder.mkdir()
    for number in range(EACH * len(PRODUCTS)):
        photo(*divmod(number, EACH)).save(folder / f"IMG_{1000 + number * 7919 % 997}.jpg")
    return folder


def press(window: Any, *keys: str) -> None:
    """Keys of which the last one says a word."""
    version = int(window.find_element("id", "review").get_attribute("data-version"))
    for key in keys:
        window.switch_to.active_element.send_keys(key)
    wait(window, f"return document.getElementById('review').dataset.version === '{version + 1}'")


def mend(window: Any) -> None:
    """Divide a group of two kinds, name one of the parts, and answer two questions; choose photos of another group."""
    press(window, "s")
    press(window, Keys.ENTER, "mug", Keys.ENTER)
    for _ in range(2):
        press(window, "n")
    window.execute_script("document.getElementById('toast').hidden = true; scrollTo(0, 0)")
    for place in (2, 5):
        window.find_elements("css selector", ".strip:nth-child(2) .photo")[place].click()


def main() -> None:
    if lacking():
        sys.exit(lacking())
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        place = make_photos(Path(name) / "photos")
        with served("review", place) as address, chromium() as window:
            open_page(window, address, 1280, 1000, "light", "review")
            mend(window)
            save(window, FOLDER / "groups.png")
            open_page(window, address, 390, 844, "light", "review")
            save(window, FOLDER / "phone.png")


if __name__ == "__main__":
    main()
