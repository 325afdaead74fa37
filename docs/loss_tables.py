"""The tables of losses in README.md, docs/losses.md and docs/analysis.md, from the catalogue and the losses.

python -m docs.loss_tables             # writes them; tests compare
python -m docs.loss_tables TABLE...    # counts, losses or "similarity types" alone
"""

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from lookalike import losses, miners, samplers
from lookalike.analysis import dependence, pair_losses

DOCS = Path(__file__).parent
README, LOSSES, ANALYSIS = DOCS.parent / "README.md", DOCS / "losses.md", DOCS / "analysis.md"
REFERENCE = re.compile(r"\s*\[math\s+([^\]]+)\]")
TRIALS = 200  # the hinge of quadruplet with the wide margin rarely closes


def counts() -> str:
    """How many members the catalogues have."""
    numbers = [len(catalogue.names()) for catalogue in (losses, miners, samplers)]
    return "**{} losses, {} miners, {} batch samplers**".format(*numbers)


def paper(text: str) -> str:
    """The first citation of a docstring."""
    first = REFERENCE.sub("", text.split("\n\n")[0].replace("\n", " "))
    return re.split(r"; | \(HPL-PA", first)[0].strip(" .")


def formula(text: str) -> str:
    """Links to the sections of docs/mathematics.md that a docstring cites, without errata."""
    cited = [section.strip().lower() for part in REFERENCE.findall(text) for section in part.split(",")]
    sections = [section for section in dict.fromkeys(cited) if not section.startswith("err-")]
    return ", ".join(f"[{section.capitalize()}](mathematics.md#{section})" for section in sections)


def catalogue() -> str:
    lines = ["| loss | paper | what it does | formula |", "|---|---|---|---|"]
    for name in losses.names():
        member: Any = losses.MEMBERS[name]
        text = sys.modules[member.__module__].__doc__ or ""
        does = (inspect.getdoc(member) or "").split("\n\n")[0].replace("\n", " ")
        lines.append(f"| [`{name}`](../src/lookalike/losses/{name}.py) | {paper(text)} | {does} | {formula(text)} |")
    return "\n" + "\n".join(lines) + "\n"


def similarity_types() -> str:
    """What the weight of a negative pair depends on, measured on every pair loss at its default settings."""
    lines = ["| loss | S | P | N |", "|---|---|---|---|"]
    for name in pair_losses():
        seen = dependence(losses.build(name), trials=TRIALS, generator=torch.Generator().manual_seed(0))
        marks = ("yes" if depends else "" for depends in (seen.itself, seen.positives, seen.negatives))
        lines.append(f"| {name} | " + " | ".join(marks) + " |")
    return "\n" + "\n".join(lines) + "\n"


TABLES: dict[str, tuple[Path, Callable[[], str]]] = {
    "counts": (README, counts),
    "losses": (LOSSES, catalogue),
    "similarity types": (ANALYSIS, similarity_types),
}


def printed(name: str) -> str:
    """The table as its page has it."""
    page, _ = TABLES[name]
    return page.read_text(encoding="utf-8").split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0]


def write(name: str) -> None:
    page, table = TABLES[name]
    before, rest = page.read_text(encoding="utf-8").split(f"<!-- {name} -->")
    after = rest.split(f"<!-- /{name} -->")[1]
    page.write_text(f"{before}<!-- {name} -->{table()}<!-- /{name} -->{after}", encoding="utf-8")


if __name__ == "__main__":
    for table_name in sys.argv[1:] or TABLES:
        write(table_name)
