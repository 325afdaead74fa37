"""A statement of a paper, tried on random cases: how many, and by how much it held or failed.

A case leaves a slack, what the statement claims to be at least 0. The smallest slack says how tight the statement is;
below 0 (by more than rounding) the case is a counter-example. A statement that holds with probability 1 − γ may fail in
a share γ of the cases.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from lookalike.errors import check

ROUNDING = 1e-9


@dataclass(frozen=True)
class Statement:
    """One row of the page of theorems.

    name: of the statement.
    claim: what it says.
    source: the paper and the place in it.
    cases: how many were tried.
    failures: how many of them refute it.
    worst: the smallest slack.
    holds: no more cases failed than it allows.
    expected: whether it should hold; False: the paper prints it, and it is wrong.
    remark: what else to know.
    """

    name: str
    claim: str
    source: str
    cases: int
    failures: int
    worst: float
    holds: bool
    expected: bool
    remark: str = ""

    @property
    def verdict(self) -> str:
        outcome = "holds" if self.holds else "fails"
        return outcome if self.holds == self.expected else f"{outcome} (unexpected)"


def tried(
    name: str,
    claim: str,
    source: str,
    slacks: Float[Tensor, " cases"],
    *,
    expected: bool = True,
    allowed: float = 0.0,
    remark: str = "",
    rounding: float = ROUNDING,
) -> Statement:
    """The statement with the outcome of its cases.

    >>> import torch
    >>> tried("A", "x ≥ 0", "nowhere", torch.tensor([0.5, 0.2])).verdict
    'holds'
    """
    check(slacks.numel() > 0, f"no case meets the conditions of '{name}': try more cases")
    failures = int((slacks < -rounding).sum())
    holds = failures <= allowed * slacks.numel()
    return Statement(name, claim, source, slacks.numel(), failures, float(slacks.min()), holds, expected, remark)
