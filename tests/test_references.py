"""Every reference resolves: `[math F.7]` in docs/mathematics.md, `[architecture layers]` in docs/architecture.md."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = {"math": ROOT / "docs" / "mathematics.md", "architecture": ROOT / "docs" / "architecture.md"}
FOLDERS = ["src", "tests", "benchmarks", "papers", "examples", "docs"]
TEXT = {".py", ".toml", ".md", ".js", ".css"}

# a list or a range: [math F.7], [math A16, I.4], [math G.1–G.4], [math A9 to A12]
REFERENCE = re.compile(r"\[(math|architecture)\s+([^\]]+)\]")
SEPARATOR = re.compile(r"\s*(?:,|–|\bto\b|\band\b)\s*")
LINE_BREAK = re.compile(r"\s*\n\s*(?:#\s*)?")
# how these pages were cited before they existed
OUTDATED = re.compile(r"\bSPEC\b|\bDESIGN\b|\bERR-\d+")


def files() -> list[Path]:
    return sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*") if file.suffix in TEXT)


def anchors(page: Path) -> list[str]:
    return re.findall(r'<a id="([^"]+)"></a>', page.read_text())


def references(text: str) -> list[tuple[str, str]]:
    """The page and anchor of every reference in a text.

    >>> references("# see [math F.7,\\n# ERR-33]")
    [('math', 'f.7'), ('math', 'err-33')]
    """
    return [
        (page, section.lower())
        for page, sections in REFERENCE.findall(LINE_BREAK.sub(" ", text))
        for section in SEPARATOR.split(sections.strip())
    ]


def test_every_reference_has_an_anchor():
    known = {page: set(anchors(path)) for page, path in PAGES.items()}
    missing = [
        f"{file.relative_to(ROOT)}: [{page} {section}]"
        for file in files()
        if file != Path(__file__)
        for page, section in references(file.read_text())
        if section not in known[page]
    ]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_anchors_are_unique_and_links_within_a_page_resolve(page):
    names = anchors(page)
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
    assert all(name == name.lower() for name in names)
    links = set(re.findall(r"\]\(#([^)]+)\)", page.read_text()))
    assert links <= set(names), sorted(links - set(names))


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_links_to_an_anchor_resolve(page):
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    link = re.compile(rf"\]\([^)#]*{re.escape(page.name)}#([^)]+)\)")
    links = {name for other in pages for name in link.findall(other.read_text())}
    assert links <= set(anchors(page)), sorted(links - set(anchors(page)))


PATH = re.compile(r"(?<![\w./-])((?:papers|examples|tests|benchmarks|docs|scripts|src|deploy)/[a-z_0-9/.-]+\.\w+)")
MODULE = re.compile(r"python -m ((?:papers|tests|benchmarks|docs|scripts)[a-z_0-9.]*)")


def test_every_file_and_module_that_is_named_exists():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile", *files()]
    missing = []
    for page in pages:
        text = page.read_text()
        modules = {name.rstrip(".").replace(".", "/") for name in MODULE.findall(text)}
        for path in sorted({*PATH.findall(text), *modules}):
            there = any((ROOT / f"{path}{end}").is_file() for end in ("", ".py", "/__main__.py"))
            if not there and "/your_" not in path:
                missing.append(f"{page.relative_to(ROOT)}: {path}")
    assert not missing, "\n".join(missing)


def test_all_errata_are_listed():
    numbers = [int(name.removeprefix("err-")) for name in anchors(PAGES["math"]) if name.startswith("err-")]
    assert numbers == list(range(1, len(numbers) + 1))


def test_nothing_is_cited_that_is_not_in_the_repository():
    outdated = [
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for file in files()
        if file not in PAGES.values() and file != Path(__file__)
        for line in REFERENCE.sub("", file.read_text()).splitlines()
        if OUTDATED.search(line)
    ]
    assert not outdated, "\n".join(outdated)
