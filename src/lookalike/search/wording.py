"""An answer for people. The words follow from the verdict and the chances by fixed rules, and never say more."""

from lookalike.search.items import Answer


def in_words(answer: Answer) -> str:
    """A calibrated answer in a few words; without a label among the hits, about the best of them."""
    name = answer.label or (answer.hits[0].id if answer.hits else None)
    if name is None or (answer.verdict == "unknown" and answer.match is not None):
        return "nothing like it here"
    if answer.verdict == "sure":
        return f"sure: {name}"
    if answer.verdict == "maybe" and (answer.chance is None or answer.chance >= 0.5):
        return f"probably {name}"
    return f"something like {name}, not sure which"
