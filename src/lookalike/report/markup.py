"""HTML and SVG by construction: text that is not markup already is escaped, so that names from the data stay text."""

import json
import re
from html import escape
from typing import Any

VOID = frozenset({"br", "img", "input", "meta"})
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")  # not allowed in XML


class Html(str):
    """Text that is already markup."""

    __slots__ = ()


def text(value: object) -> Html:
    """Anything as markup: markup stays, everything else is escaped.

    >>> text("<b> & co")
    '&lt;b&gt; &amp; co'
    """
    return value if isinstance(value, Html) else Html(escape(CONTROL.sub("\ufffd", str(value))))


def element(name: str, /, *children: object, **attributes: object) -> Html:
    """One element. `class_` becomes class, `stroke_width` becomes stroke-width; attributes that are None are left out.

    >>> element("p", "1 < 2", class_="note", id=None)
    '<p class="note">1 &lt; 2</p>'
    """
    inside = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID:
        return Html(f"<{name}{inside}>")
    return Html(f"<{name}{inside}>{join(*children)}</{name}>")


def join(*children: object) -> Html:
    return Html("".join(text(child) for child in children))


def data_block(identifier: str, content: Any) -> Html:
    """JSON for the page's script. It contains no `<`, so nothing in it can end the element.

    >>> data_block("names", ["</script>"])
    '<script type="application/json" id="names">["\\\\u003c/script>"]</script>'
    """
    compact = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    safe = (
        CONTROL.sub("\ufffd", compact).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    )
    return Html(f'<script type="application/json" id="{text(identifier)}">{safe}</script>')
