"""Takes the pictures of docs/report.md and of a search: `make demo`, then `python -m scripts.draw_report demo`.

The map is by t-SNE where openTSNE is installed when the report is written.
"""

import base64
import sys
import time
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from tests.fixtures.chromium import chromium, lacking, show

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
HOVER = """
const canvas = document.getElementById("map-canvas");
canvas.scrollIntoView({ block: "center" });
canvas.focus();
for (const key of ["ArrowRight", "ArrowDown"]) canvas.dispatchEvent(new KeyboardEvent("keydown", { key }));
"""


def save(window: Any, name: str, box: tuple[float, float, float, float]) -> None:
    x, y, width, height = box
    clip = {"x": x, "y": y, "width": width, "height": height, "scale": 1}
    shot = window.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    image = Image.open(BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    image.save(PICTURES / f"{name}.png", optimize=True)


def box_of(window: Any, selector: str) -> tuple[float, float, float, float]:
    """Where an element is on the page, with a margin."""
    box = window.execute_script(
        "const b = document.querySelector(arguments[0]).getBoundingClientRect();"
        "return [b.left + scrollX, b.top + scrollY, b.width, b.height]",
        selector,
    )
    return box[0] - 12, box[1] - 6, box[2] + 24, box[3] + 12


def main(run: Path) -> None:
    if lacking():
        sys.exit(lacking())
    page = run / "report.html"
    with chromium() as window:
        show(window, page)
        save(window, "report/top", (0, 0, 1280, 990))
        x, y, width, _ = box_of(window, "#queries")
        save(window, "report/queries", (x, y, width, 960))
        window.execute_script(HOVER)
        time.sleep(0.5)
        save(window, "report/map", box_of(window, "#figure-map"))
        show(window, page, 390, "dark")
        save(window, "report/phone", (0, 0, 390, 1250))
        show(window, run / "search.html")
        save(window, "search", (0, 0, 1280, 1010))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
