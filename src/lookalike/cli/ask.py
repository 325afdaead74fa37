"""`lookalike ask found.csv`: same or different? What a few answers say about all groups."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lookalike.errors import check

EXAMPLE = "lookalike ask found.csv --answer 1=same"


def run(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="The table of lookalike discover.")],
    answer: Annotated[
        list[str] | None, typer.Option("--answer", help="NUMBER=same, NUMBER=different or NUMBER=unsure.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
) -> None:
    """Show the next pair of photos to compare, keep answers, and say how pure the groups are at least.

    Pairs are drawn at random, so that thirty to sixty answers bound the purity of all groups. Answers are kept beside
    the table, in NAME.answers.jsonl; a later answer to the same question replaces the earlier one.
    """
    from lookalike.discover import answers
    from lookalike.discover.questions import answered, checked, questions
    from lookalike.discover.table import read

    asked = questions(read(table))
    for number, word in [answers.parsed(text) for text in answer or []]:
        check(0 < number <= len(asked), f"there is no question {number}: they go from 1 to {len(asked):,}")
        question = asked[number - 1]
        answers.append(table, answers.PairAnswer(number, question.left, question.right, word))
    known = answered(asked, answers.read(table))
    done = {given.number for given in known}
    following = next((question for question in asked if question.number not in done), None)
    result = checked(known)
    if as_json:
        content = {"question": None if following is None else asdict(following), "answers": result.pairs}
        typer.echo(json.dumps(content | {"same": result.same, "purity": result.purity}, indent=2, ensure_ascii=False))
        return
    typer.echo(str(result))
    if following is not None:
        typer.echo(f"Question {following.number}: do these show the same kind ({following.label})?")
        typer.echo(f"  {following.left}\n  {following.right}")
        typer.echo(f"Answer with: lookalike ask {table} --answer {following.number}=same (or different, unsure)")
