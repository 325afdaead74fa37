"""The site: `make docs`, offline. Guides are the pages of this folder, the reference comes from docstrings."""

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs.reference_pages import filled

project, author, language = "lookalike", "the authors of lookalike", "en"
copyright = author
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
html_theme, html_title = "furo", "lookalike"
html_show_sphinx = html_copy_source = False
html_static_path, html_css_files = ["static"], ["narrow.css"]
highlight_language = "none"  # of what has no language: commands and what they print
smartquotes = False  # which would turn the two hyphens of an option into a dash
myst_heading_anchors = 4
myst_enable_extensions = ["deflist", "dollarmath", "html_image"]
html_math_renderer = "mathml"  # which browsers draw themselves: nothing is loaded from elsewhere
# pages link to each other by anchors in HTML, which MyST does not know; tests/docs/test_site.py follows every link
suppress_warnings = ["myst.xref_missing"]
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_typehints = "signature"  # which has the shapes
python_maximum_signature_line_length = 100

OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)[^)]*\)")  # a file of the repository that is no page
FIGURE = re.compile(r"[-+−±×/.,:;%\[\]()\d\s]{1,30}(?:ms|s|[kMGT]B)?")
LONG = 60  # characters of a cell
SETTING = re.compile(r"(\w+): (.*)")
DEFAULT = re.compile(r"\b([A-Z]\w*)\((?:[^()]|\(\))+\)")  # an object, with the values of its fields
FRACTION = re.compile(r"\\frac(\w)(\w?)")  # without braces, as TeX allows
UNWRITABLE = re.compile(r"=?<(?:factory|function \S+(?: at \w+)?)>")


def standing_alone(app: Any, page: str, source: list[str]) -> None:
    """A link to a file of the repository that is no page becomes its name."""
    written = source[0]
    if page == "index":
        source[0] += unlisted(source[0])
    source[0] = filled(source[0])
    if source[0] != written:
        app.env.note_reread()  # what it shows may change without its file
    if "/" not in page:
        source[0] = OUTSIDE.sub(
            lambda link: link[1] if link[1].strip("`") in (link[2], Path(link[2]).stem) else f"{link[1]} (`{link[2]}`)",
            source[0],
        )


def unlisted(index: str) -> str:
    """A table of the pages that the index forgot: a new guide is in the site the moment it is written."""
    here = Path(__file__).parent
    pages = {str(page.relative_to(here).with_suffix("")) for page in here.rglob("*.md")}
    forgotten = sorted(pages - set(index.split()) - {"index"})
    return "\n".join(["", "```{toctree}", ":caption: More", *forgotten, "```", ""]) if forgotten else ""


def as_markup(_app: Any, what: str, name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Docstrings are written for people at a terminal; formulas, `code` and `setting: meaning` become markup here."""
    if what == "module" and (name.count(".") > 1 or not any("`" in line for line in lines)):
        del lines[:]  # the guides say it, unless a room explains the arguments that all its members share
    example = False
    for place, line in enumerate(lines):
        words = line.strip()
        example = bool(words) and (example or words.startswith(">>>"))
        if not example:
            setting = SETTING.fullmatch(words) if what == "class" else None
            lines[place] = f":param {setting[1]}: {escaped(setting[2])}" if setting else escaped(words)


def shortened(_app: Any, _what: str, _name: str, _object: Any, _options: Any, signature: str, returns: str) -> Any:
    """Defaults that are objects stand there by their name alone, functions and fresh objects as three dots."""
    text, last = UNWRITABLE.sub(lambda found: " = ..." if found[0][0] == "=" else "...", signature or ""), ""
    while text != last:
        text, last = DEFAULT.sub(r"\1()", text), text
    return (text or None), returns


def is_hidden(_app: Any, _what: str, _name: str, thing: Any, skip: bool, _options: Any) -> bool:
    """Constants, fields and what torch inherits are left out; functions and properties never are."""
    thing = getattr(thing, "fget", None) or getattr(thing, "func", None) or thing  # of a property
    ours = str(getattr(thing, "__module__", "")).startswith("lookalike")
    skip = skip or getattr(thing, "__name__", "") in ("extra_repr", "<lambda>")
    return skip or not ours or thing.__doc__ is type(thing).__doc__  # an object has that of its class


def escaped(text: str) -> str:
    """`code` as code, and everything else as it is written."""
    parts = re.split(r"`([^`]+)`", text)
    words = [part if place % 2 else re.sub(r"([\\*|_`])", r"\\\1", part) for place, part in enumerate(parts)]
    return "".join(f"``{part}``" if place % 2 else part for place, part in enumerate(words))


def unbroken(_app: Any, document: Any) -> None:
    """Cells that hold a figure, such as "+0.009 ± 0.006", are not broken into lines; those with sentences get room."""
    for cell in document.findall(nodes.entry):
        if FIGURE.fullmatch(cell.astext()):
            cell["classes"].append("short")
        elif len(cell.astext()) > LONG:
            cell["classes"].append("long")


def formula(translator: Any, node: Any) -> None:
    """TeX as MathML, whose braces and bars stay as high as the line."""
    tex = FRACTION.sub(lambda found: rf"\frac{{{found[1]}}}" + (f"{{{found[2]}}}" if found[2] else ""), node.astext())
    drawn = tex2mathml(tex.replace(r"\dots", r"\ldots"))
    translator.body.append(re.sub(r"<mo>(?=[{}‖])", '<mo stretchy="false">', drawn))
    raise nodes.SkipNode


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("doctree-read", unbroken)
    app.connect("source-read", standing_alone)
    app.connect("autodoc-process-docstring", as_markup)
    app.connect("autodoc-process-signature", shortened)
    app.connect("autodoc-skip-member", is_hidden)
