"""`python -m papers theorems`: what the papers state, tried on random cases."""

import json
from pathlib import Path
from typing import Annotated

import typer

from lookalike.analysis import save
from lookalike.cli.bars import bar
from papers.statement import Statement
from papers.theorem_picture import draw_theorems, theorem_numbers
from papers.theorems import check_theorems, statement_rows

EXAMPLE = "python -m papers theorems --cases 2000 --out figures/"


def run(
    cases: Annotated[int, typer.Option("--cases", help="Random cases per statement, at most.")] = 2000,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the random cases.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", help="Also write theorems.svg, .png, .json here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Try the theorems of Sampling Wisely, FastAP and Chance Constraints, with counter-examples where they fail.

    Slack is what a statement claims to be at least 0; its smallest value shows how tight the statement is. The exit
    code is 1 if a statement turned out other than expected.
    """
    with bar("trying") as progress:
        statements = check_theorems(cases, seed, progress)
    rows = statement_rows(statements)
    if out is not None:
        numbers = theorem_numbers(seed=seed)
        figure = draw_theorems(numbers)
        save(figure, {"seed": seed, "statements": rows, "figure": numbers}, out, "theorems")
    document = {"seed": seed, "statements": rows}
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False) if as_json else as_table(statements, seed))
    raise typer.Exit(0 if all(statement.holds == statement.expected for statement in statements) else 1)


def as_table(statements: list[Statement], seed: int) -> str:
    """One line per statement, under the paper it is from; what fails is followed by why."""
    lines = [f"seed {seed}; slack: what a statement claims to be at least 0"]
    lines += [f"{'cases':>7} {'failed':>7} {'least slack':>12}"]
    paper = ""
    for statement in statements:
        source, _, place = statement.source.partition(",")
        if source != paper:
            lines += ["", source]
            paper = source
        worst = f"{statement.worst:.2g}" if abs(statement.worst) > 1e-9 else "0"
        where = f" ({place.strip()})" if place else ""
        lines.append(
            f"{statement.cases:>7,} {statement.failures:>7,} {worst:>12}  {statement.verdict}: {statement.claim}{where}"
        )
        if statement.remark:
            lines.append(f"{'':>30}{statement.remark}")
    return "\n".join(lines)
