"""The page in a real browser: opening it, acting on it, and what it must always be: quiet, alone, readable, named."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fixtures.chromium import PATIENCE
from tests.report.browser import CONTRAST, requests

STARTED = "return !document.getElementById('start').hidden || !document.getElementById('token').hidden"
ANSWERED = (
    "return document.getElementById('answers').ariaBusy === 'false'"
    " && !document.getElementById('results').hidden && !document.querySelector('.skeleton')"
)
CONTROLS = {"button", "checkbox", "combobox", "image", "link", "searchbox", "spinbutton", "textbox"}


@dataclass
class Page:
    """One window on one server."""

    window: Any
    address: str

    def resize(self, width: int = 1280, scheme: str = "light") -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.window.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": width < 500})

    def open(self, path: str = "/", width: int = 1280, scheme: str = "light", until: str = STARTED) -> None:
        self.resize(width, scheme)
        self.window.get("about:blank")
        requests(self.window)
        self.window.get_log("browser")
        self.window.get(f"{self.address}{path}")
        self.wait(until)

    def run(self, code: str, *arguments: object) -> Any:
        return self.window.execute_script(code, *arguments)

    def wait(self, code: str, *arguments: object) -> Any:
        """Until the page says yes."""
        deadline = time.monotonic() + 2 * PATIENCE
        while not (result := self.run(code, *arguments)):
            assert time.monotonic() < deadline, f"not after {2 * PATIENCE} s: {code}\n{self.text('main')}"
            time.sleep(0.02)
        return result

    def answered(self) -> None:
        self.wait(ANSWERED)

    def one(self, selector: str) -> Any:
        return self.window.find_element("css selector", selector)

    def text(self, selector: str) -> str:
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def texts(self, selector: str) -> list[str]:
        return self.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)

    def labels(self) -> list[str]:
        return self.texts(".card .label > span:first-child")

    def click(self, selector: str, place: int = 0) -> None:
        """As a mouse does it: where something lies on top, the click fails."""
        element = self.window.find_elements("css selector", selector)[place]
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def upload(self, *files: Path, field: str = "#start .choose") -> None:
        """Choose files, and wait until they are answered or refused."""
        self.one(field).send_keys("\n".join(map(str, files)))
        self.wait(f"{ANSWERED} || !document.getElementById('notice').hidden")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.window.switch_to.active_element.send_keys(key)

    def mouse(self, kind: str, x: float, y: float, **more: object) -> None:
        self.window.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **more})

    def check(self, least: int, complaints: int = 0) -> None:
        """Quiet, alone, nothing wider than the window, all texts legible, all controls named."""
        logged = self.window.get_log("browser")
        assert len(logged) == complaints, logged
        addresses = requests(self.window)
        assert all(each.startswith((self.address, f"blob:{self.address}")) for each in addresses), addresses
        self.check_readable(least)

    def check_readable(self, least: int) -> None:
        self.run("document.getAnimations().forEach((each) => each.finish?.call ? each.cancel() : null)")
        width = self.run("return innerWidth")
        assert self.run("return document.documentElement.scrollWidth") <= width
        texts, poor = self.run(CONTRAST)
        assert texts > least
        assert poor == []
        assert self.nameless() == []

    def nameless(self) -> list[dict[str, Any]]:
        """Controls that the browser itself tells a screen reader nothing about."""
        nodes = self.window.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        named = [node for node in nodes if node.get("role", {}).get("value") in CONTROLS and not node["ignored"]]
        assert len(named) > 1
        return [node for node in named if not node["name"].get("value", "").strip()]
