"""The page of the watch: each alarm says what it is about, and what to do."""

import json
from contextlib import contextmanager
from dataclasses import asdict

import pytest

from lookalike.search.watching.watch import ALARMS, Day

DRAWN = "return document.getElementById('verdict').textContent !== 'Looking …'"
QUERIES = "The queries of today are not those it was calibrated for"
MARKS = "Sure answers are marked wrong more often than promised"
PICTURES = "Known pictures are no longer found as themselves"


@contextmanager
def answering(window, content):
    """The server says this, whatever it is asked."""
    source = f"window.fetch = async () => new Response({json.dumps(json.dumps(content))})"
    made = window.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
    try:
        yield
    finally:
        window.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", made)


@pytest.mark.parametrize(
    ("alarms", "heading", "advice"),
    [
        ([], "Nothing unusual today", ""),
        (["cloud", "similarity"], QUERIES, "calibrate again with such pictures"),
        (["marks"], MARKS, "lookalike labels"),
        (["canaries"], PICTURES, "lookalike status INDEX --check"),
        (ALARMS, f"{PICTURES}. {MARKS}. {QUERIES}", "do not rely on any answer"),
    ],
)
def test_an_alarm_says_what_it_is_about(page, alarms, heading, advice):
    day = asdict(Day("2026-01-01", alarms=dict.fromkeys(alarms, 1)))
    content = {"reference": True, "evidence": {"marks": 0.1}, "promise": "", "days": [day]}
    with answering(page.window, content):
        page.open("/watch", until=DRAWN)
    assert page.text("#verdict") == heading
    assert advice in page.text("#meaning")
    assert ("calibrate again" in page.text("#meaning")) == (bool(alarms) and alarms != ["canaries"])
