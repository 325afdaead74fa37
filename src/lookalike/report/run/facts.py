"""What went in: the data and what is wrong with it, the model, settings, versions, seed and the command."""

from collections.abc import Mapping
from typing import Any

from lookalike.data.audit.findings import SHOWN, in_words
from lookalike.report.markup import Html, element, join
from lookalike.report.page.page import note
from lookalike.report.page.tables import facts, written
from lookalike.report.run.record import RunRecord


def data_section(run: RunRecord) -> Html:
    notes = [element("li", event.get("text", "")) for event in run.log.of("note")]
    listed = join(element("h3", "Notes of the run"), element("ul", *notes)) if notes else Html()
    return join(facts(run.part("data").items()), listed, _audit(run.audit))


def _audit(audit: Mapping[str, Any] | None) -> Html:
    if audit is None:
        return note("The data of this run were not audited.")
    findings = audit.get("findings") or []
    head = element("h3", "Audit of the data")
    verdict = element("p", str(audit.get("verdict", "")))
    if not findings:
        return join(head, verdict, element("p", "The audit found nothing wrong."))
    return join(head, verdict, element("ul", *(_finding(finding) for finding in findings), class_="findings"))


def _finding(finding: Mapping[str, Any]) -> Html:
    items = finding.get("items") or []
    shown = [element("li", element("code", in_words(item))) for item in items[:SHOWN]]
    more = len(items) - len(shown)
    if more > 0:
        shown.append(element("li", f"and {more:,} more in audit.json"))
    words = f" {finding.get('kind', '')}: {finding.get('meaning', '')}"
    return element("li", element("strong", f"{finding.get('count', 0):,}"), words, element("ul", *shown))


def health(run: RunRecord) -> Html:
    """The warnings of training, once per kind."""
    latest = {event.get("kind"): event for event in run.log.of("health")}
    items = [
        element("li", element("strong", f"{kind}"), f" (step {event.get('step', '?')}): {event.get('advice', '')}")
        for kind, event in latest.items()
    ]
    return element("ul", *items, class_="findings") if items else Html()


def repeat_section(run: RunRecord) -> Html:
    training = ((name, _measure(name, value)) for name, value in run.part("training").items())
    parts = [facts(run.part("model").items()), facts(training)]
    command = run.result.get("command")
    if command:
        button = element("button", "copy", type="button", class_="copy")
        box = element("div", element("pre", command, id="command"), button, class_="command")
        parts += [element("h3", "Repeat it"), box]
    if run.recipe:
        parts += [element("h3", "Settings"), element("pre", run.recipe)]
    versions = facts(run.part("versions").items())
    return join(*parts, join(element("h3", "Versions"), versions) if versions else Html())


def _measure(name: str, value: Any) -> str:
    """A fact of training with its unit.

    >>> _measure("memory", 1_187_274_752), _measure("seconds", 95.0), _measure("steps", 1200)
    ('1.19 GB', '1 min 35 s', '1,200')
    """
    if name == "memory" and isinstance(value, int | float):
        return f"{value / 1e9:.2f} GB"
    if name == "seconds" and isinstance(value, int | float):
        minutes, seconds = divmod(round(value), 60)
        return f"{minutes:,} min {seconds} s" if minutes else f"{seconds} s"
    if name == "validation" and isinstance(value, Mapping):
        return ", ".join(f"{metric} {share:.3f}" for metric, share in value.items())
    return written(value)
