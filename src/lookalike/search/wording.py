"""An answer for people. The words follow from the verdict and the chances by fixed rules, and never say more."""

from dataclasses import replace

from lookalike.search.calibration.chances import in_percent
from lookalike.search.calibration.thresholds import Calibration
from lookalike.search.items import Answer

LIKELY = 0.5  # from this chance on a label is probably right
NOTHING = "nothing like it here"
PART = "Chances are measured for whole photos; this search is by a part of one."
COMBINED = "Chances are measured for photos of what is meant; this search also says what is not."


def in_words(answer: Answer, either: float | None, calibration: Calibration) -> Answer:
    """A calibrated answer with its words; `either` is the chance that its label or the next one is right."""
    words, meaning = _words(answer, either), calibration.meaning(answer.verdict, answer.chance)
    if not answer.hits:
        meaning = "There is nothing to compare it with."
    elif either is not None and answer.chance is not None and words == _of_two(answer):
        both, first = in_percent(either), in_percent(answer.chance)
        meaning = f"It is one of the two in about {both} of such answers, the first in {first}."
    return replace(answer, words=words, meaning=meaning)


def _of_two(answer: Answer) -> str:
    return f"{answer.label} or {answer.second}"


def _words(answer: Answer, either: float | None) -> str:
    measured = answer.match is not None or answer.chance is None
    if not answer.hits or (answer.verdict == "unknown" and measured):
        return NOTHING
    if answer.label is None:
        return "something like it is here"
    if answer.verdict == "sure":
        return f"sure: {answer.label}"
    if answer.chance is not None and answer.chance >= LIKELY:
        return f"probably {answer.label}"
    if answer.second is not None and either is not None and either >= LIKELY:
        return _of_two(answer)
    return f"something like {answer.label}, not sure which"


def in_brief(answer: Answer) -> str:
    """The words, with the chances they follow from; where nothing is like the query, no number says otherwise."""
    chances = {} if answer.words == NOTHING else {"match": answer.match, "chance": answer.chance}
    shown = ", ".join(f"{name} {in_percent(value)}" for name, value in chances.items() if value is not None)
    start = answer.words if answer.match is not None else f"{answer.verdict}: {answer.words}"
    return f"{start} ({shown}). {answer.meaning}".strip() if shown else f"{start}. {answer.meaning}"
