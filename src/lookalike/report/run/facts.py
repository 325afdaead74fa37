"""What went in: the data and what is wrong with it, the model, settings, versions, seed and the command."""

from collections.abc import Iterable, Mapping
from typing import Any

from lookalike.report.page.markup import Html, element, join
from lookalike.report.run.reading import Run

EXAMPLES = 3  # of a finding


def definition_list(pairs: Iterable[tuple[str, Any]]) -> Html:
    rows = [
        element("div", element("dt", name.replace("_", " ")), element("dd", written(value)))
        for name, value in pairs
        if value not in (None, "", [], {})
    ]
    return element("dl", *rows) if rows else Html()


def written(value: Any) -> str:
    """A value as people read it.

    >>> written(12345), written({"a": 1, "b": [2, 3]})
    ('12,345', 'a 1, b 2, 3')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {written(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(written(part) for part in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def data_section(run: Run) -> Html:
    notes = [element("li", event.get("text", "")) for event in run.events("note")]
    told = join(element("h3", "Notes of the run"), element("ul", *notes)) if notes else Html()
    return join(definition_list((run.result.get("data") or {}).items()), told, _audit(run.audit))


def _audit(audit: Mapping[str, Any] | None) -> Html:
    if audit is None:
        return element("p", "This run has no audit of its data.", class_="note")
    findings = audit.get("findings") or []
    head = element("h3", "Audit of the data")
    verdict = element("p", str(audit.get("verdict", "")))
    if not findings:
        return join(head, verdict, element("p", "Nothing was found wrong with it."))
    return join(head, verdict, element("ul", *(_finding(finding) for finding in findings), class_="findings"))


def _finding(finding: Mapping[str, Any]) -> Html:
    items = finding.get("items") or []
    shown = [element("li", element("code", _example(item))) for item in items[:EXAMPLES]]
    more = len(items) - len(shown)
    if more > 0:
        shown.append(element("li", f"and {more:,} more in audit.json"))
    words = f" {finding.get('kind', '')}: {finding.get('meaning', '')}"
    return element("li", element("strong", f"{finding.get('count', 0):,}"), words, element("ul", *shown))


def _example(item: Any) -> str:
    if isinstance(item, list):
        return " = ".join(_example(part) for part in item[:EXAMPLES]) + (" = …" if len(item) > EXAMPLES else "")
    if not isinstance(item, Mapping):
        return str(item)
    note = item.get("detail") or item.get("looks_like")
    return f"{item.get('path', '')} [{item.get('label', '')}]" + (f": {note}" if note else "")


def health(run: Run) -> Html:
    """What watched over training said, once per kind."""
    latest = {event.get("kind"): event for event in run.events("health")}
    items = [
        element("li", element("strong", f"{kind}"), f" (step {event.get('step', '?')}): {event.get('advice', '')}")
        for kind, event in latest.items()
    ]
    return element("ul", *items, class_="findings") if items else Html()


def repeat_section(run: Run) -> Html:
    training = {**(run.result.get("training") or {})}
    parts = [definition_list((run.result.get("model") or {}).items()), definition_list(training.items())]
    command = run.result.get("command")
    if command:
        button = element("button", "copy", type="button", class_="copy")
        parts += [
            element("h3", "Repeat it"),
            element("div", element("pre", command, id="command"), button, class_="command"),
        ]
    if run.settings:
        parts += [element("h3", "Settings"), element("pre", run.settings)]
    versions = definition_list((run.result.get("versions") or {}).items())
    return join(*parts, join(element("h3", "Versions"), versions) if versions else Html())
