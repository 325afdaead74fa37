"""What a page does in a real browser: what it loads, what the browser complains about, whether it can be read."""

import json
from pathlib import Path
from typing import Any

from tests.fixtures.chromium import show

CONTRAST = (Path(__file__).parent / "contrast.js").read_text()


def requests(window: Any) -> list[str]:
    """Every address asked for since the last call, but for those of the browser's own start page."""
    messages = [json.loads(entry["message"])["message"] for entry in window.get_log("performance")]
    sent = [message["params"] for message in messages if message["method"] == "Network.requestWillBeSent"]
    return [params["request"]["url"] for params in sent if not params["documentURL"].startswith("chrome")]


def check_quiet_alone_and_readable(window: Any, page: Path, width: int, scheme: str, least: int) -> None:
    """No complaint, no request but for itself, nothing wider than the window, all texts legible."""
    window.get("about:blank")  # a page before it may still be loading its pictures
    requests(window)
    window.get_log("browser")
    show(window, page, width, scheme)
    assert window.execute_script("return document.documentElement.scrollWidth") <= width
    addresses = requests(window)
    assert page.as_uri() in addresses
    assert all(address.startswith(("data:", page.as_uri())) for address in addresses), addresses
    assert window.get_log("browser") == []
    texts, poor = window.execute_script(CONTRAST)
    assert texts > least
    assert poor == []
