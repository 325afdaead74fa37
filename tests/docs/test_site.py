"""The site builds without a warning, offline; none of its links is broken, and no page is too wide."""

import importlib
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from lookalike import losses
from tests.docs.test_arguments import ALONE, ROOMS
from tests.fixtures.chromium import show
from tests.missing import missing

ROOT = Path(__file__).parents[2]
IDS = re.compile(r'\s(?:id|name)="([^"]+)"')
LINKS = re.compile(r'<(?:a|link|img|script)\b[^>]*?\s(?:href|src)="([^"]+)"')


def build(out: Path) -> Path:
    try:
        import furo  # noqa: F401
        import myst_parser  # noqa: F401
        import sphinx  # noqa: F401
    except ImportError as error:
        missing(f"the site needs the extra docs ({error})")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", str(out / "trees")]
    command += [str(ROOT / "docs"), str(out / "site")]
    built = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert built.returncode == 0, built.stderr
    assert not built.stderr
    return out / "site"


@pytest.mark.slow
def test_the_site(tmp_path, window):
    """One test, so that two processes do not build it twice."""
    site = build(tmp_path)
    guides = {page.stem for page in (ROOT / "docs").glob("*.md")}
    assert guides <= {page.stem for page in site.glob("*.html")}
    check_links(site)
    check_reference(site)
    check_formulas(site)
    check_widths(site, window)
    assert "<td></td>" not in (site / "reference" / "http.html").read_text(encoding="utf-8")  # each field has a meaning
    assert (site / "searchindex.js").stat().st_size > 50_000


def check_links(site: Path) -> None:
    pages = {page: unescape(page.read_text(encoding="utf-8")) for page in site.rglob("*.html")}
    known = {page: set(IDS.findall(text)) for page, text in pages.items()}
    broken = []
    for page, text in pages.items():
        for link in LINKS.findall(text):
            if re.match(r"(https?|data|mailto):", link):
                continue
            path, _, anchor = unquote(link).partition("#")
            target = (page.parent / path.split("?")[0]).resolve() if path.split("?")[0] else page
            if not target.exists() or (anchor and target in known and anchor not in known[target]):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert not broken, "\n".join(sorted(set(broken)))


def check_formulas(site: Path) -> None:
    """Browsers draw them: no TeX is left on a page."""
    text = (site / "mathematics.html").read_text(encoding="utf-8")
    assert text.count("<math") == len(re.findall(r"\$[^$]+\$", (ROOT / "docs" / "mathematics.md").read_text()))
    assert "\\frac" not in text


def check_widths(site: Path, window) -> None:
    """On a laptop and on a phone no page is wider than the window: what is wide scrolls by itself."""
    wide = []
    for page in sorted(site.rglob("*.html")):
        show(window, page, 1280)
        for width in (1280, 390):
            screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
            window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
            if window.execute_script("return document.documentElement.scrollWidth") > width:
                wide.append(f"{page.relative_to(site)} at {width} pixels")
    assert not wide


def check_reference(site: Path) -> None:
    """Every public name, and how every loss is called, with shapes."""
    text = "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html"))
    documented = set(re.findall(r'id="lookalike\.([\w.]+)"', text))
    for place in {*ROOMS, *ALONE} - {"fit"}:  # of which a part is for the room above
        module = importlib.import_module(f"lookalike.{place}")
        public = {f"{place}.{name}" for name in ALONE.get(place) or module.__all__ if callable(getattr(module, name))}
        assert not public - documented, sorted(public - documented)
    assert {"targets.Pairs.listed", "targets.Triplets.listed"} <= documented
    for loss in losses.MEMBERS.values():
        assert any(name.endswith(f"{loss.__name__}.forward") for name in documented), loss.__name__
