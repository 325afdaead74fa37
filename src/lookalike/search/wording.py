"""An answer for people. The words follow from the verdict and the chances by fixed rules, and never say more."""

from dataclasses import replace

from lookalike.search.calibration.thresholds import Calibration
from lookalike.search.items import Answer

LIKELY = 0.5  # from this chance on a label is probably right


def in_words(answer: Answer, either: float | None, calibration: Calibration) -> Answer:
    """A calibrated answer with its words; `either` is the chance that its label or the next one is right."""
    return replace(answer, words=_words(answer, either), meaning=calibration.meaning(answer.verdict, answer.chance))


def _words(answer: Answer, either: float | None) -> str:
    name = answer.label or (answer.hits[0].id if answer.hits else None)
    measured = answer.match is not None or answer.chance is None
    if name is None or (answer.verdict == "unknown" and measured):
        return "nothing like it here"
    if answer.verdict == "sure":
        return f"sure: {name}"
    if answer.chance is None or answer.chance >= LIKELY:
        return f"probably {name}"
    if answer.second is not None and either is not None and either >= LIKELY:
        return f"{name} or {answer.second}"
    return f"something like {name}, not sure which"


def in_brief(answer: Answer) -> str:
    """The words, with the chances they follow from."""
    chances = {"match": answer.match, "chance": answer.chance}
    shown = ", ".join(f"{name} {value:.2f}" for name, value in chances.items() if value is not None)
    start = answer.words if answer.match is not None else f"{answer.verdict}: {answer.words}"
    return f"{start} ({shown}). {answer.meaning}".strip() if shown else f"{start}. {answer.meaning}"
