"""A real browser, Debian's Chromium driven by selenium: for the pictures of the docs, and for the tests of pages."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PATIENCE = 30  # seconds, on a busy machine
WHOLE = "return document.readyState === 'complete' && document.body.querySelector('script') !== null"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
         "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
         )  # fmt: skip


def lacking() -> str:
    """What has to be installed before a browser can be opened; nothing if all is there."""
    if find_spec("selenium") is None:
        return "selenium is not installed (pip install -e '.[test]')"
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        return "chromium with chromedriver is not installed (Debian: apt-get install chromium chromium-driver)"
    return ""


@contextmanager
def chromium() -> Iterator[Any]:
    """An open window, with a profile of its own that is deleted afterwards."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = Options()
        options.binary_location = str(shutil.which("chromium"))
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        window = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        # without a screen a window may never have the focus, which the clipboard asks for
        window.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
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
        if time.monotonic() > deadline:
            raise TimeoutError(f"{page} has not loaded after {PATIENCE} s")
        time.sleep(0.05)
