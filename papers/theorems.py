"""Every statement of the papers that can be tried without training, tried: what held, by how much, and what did not.

Sampling Wisely (theorems 1-4), FastAP (against exact average precision, eq. 17) and Chance Constraints (Lipschitz
facts, operator norms, propositions 4.1 and 4.2); [math I.3, I.4, I.6]. A trial is not a proof: it can only refute.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch

from lookalike.errors import check
from papers.ccp.covers import cover_statements
from papers.ccp.lipschitz import lipschitz_statements
from papers.fastap.statements import fastap_statements
from papers.statement import Statement
from papers.top_k.statements import top_k_statements

FEWER = 500  # cases of families that build them one by one


def check_theorems(
    cases: int = 2000, seed: int = 0, progress: Callable[[int, int], None] | None = None
) -> list[Statement]:
    """All statements, each tried on up to `cases` random cases (at least 20), drawn by `seed`."""
    check(cases >= 20, f"at least 20 cases are needed, not {cases}: fewer say too little")
    families = (
        (top_k_statements, cases),
        (fastap_statements, min(cases, FEWER)),
        (lipschitz_statements, cases),
        (cover_statements, min(cases, FEWER)),
    )
    statements: list[Statement] = []
    for done, (family, count) in enumerate(families, 1):
        statements += family(count, torch.Generator().manual_seed(seed))
        if progress is not None:
            progress(done, len(families))
    return statements


def statement_rows(statements: list[Statement]) -> list[dict[str, Any]]:
    """For JSON and tables."""
    return [asdict(statement) | {"verdict": statement.verdict} for statement in statements]
