"""A real browser, Debian's Chromium by selenium: what it was told to load, what it complained about, how it looks."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

CONTRAST = (Path(__file__).parent / "contrast.js").read_text()
PATIENCE = 30  # seconds, on a busy machine
WHOLE = "return document.readyState === 'complete' && document.body.querySelector('script') !== null"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")


def missing(what: str) -> None:
    """Skips, but not where a skipped test would go unnoticed."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}: this test must run in CI")
    pytest.skip(what)


@contextmanager
def chromium() -> Iterator[Any]:
    if find_spec("selenium") is None:
        missing("selenium is not installed (pip install -e '.[test]')")
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        missing("no chromium with chromedriver here (Debian: apt-get install chromium chromium-driver)")
    options = Options()
    options.binary_location = program
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    window = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield window
    finally:
        window.quit()


def show(window: Any, page: Path, width: int = 1280, scheme: str = "light") -> None:
    """Open a page at a width, in light or dark."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    window.get("about:blank")  # else a page opened twice may still be the old one
    window.get(page.as_uri())
    deadline = time.monotonic() + PATIENCE
    while not window.execute_script(WHOLE):
        assert time.monotonic() < deadline, f"{page} is not there after {PATIENCE} s"
        time.sleep(0.05)


def requests(window: Any) -> list[str]:
    """Every address asked for since the last call."""
    messages = [json.loads(entry["message"])["message"] for entry in window.get_log("performance")]
    sent = [message["params"] for message in messages if message["method"] == "Network.requestWillBeSent"]
    return [params["request"]["url"] for params in sent]


def check_quiet_alone_and_readable(window: Any, page: Path, width: int, scheme: str, least: int) -> None:
    """No complaint, no request but for itself, nothing wider than the window, all texts legible."""
    requests(window)
    window.get_log("browser")
    show(window, page, width, scheme)
    assert window.execute_script("return document.documentElement.scrollWidth") <= width
    addresses = requests(window)
    assert page.as_uri() in addresses
    assert all(address.startswith(("data:", page.as_uri())) for address in addresses), addresses
    assert window.get_log("browser") == []
    seen, poor = window.execute_script(CONTRAST)
    assert seen > least
    assert poor == []
