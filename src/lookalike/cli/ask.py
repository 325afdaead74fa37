"""`lookalike ask photos/`: same or different? The question whose answer brings most, or how pure a table is."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lookalike.cli.grouping import KNOWN, open_review
from lookalike.errors import UserError, check

if TYPE_CHECKING:
    from lookalike.discover.mending import Answer

EXAMPLE = "lookalike ask photos/ --answer 1=same"


def run(
    source: Annotated[
        str,
        typer.Argument(
            metavar="PHOTOS|INDEX|TABLE", help="Photos, an index, or a table written by `lookalike discover`."
        ),
    ],
    answer: Annotated[
        list[str] | None,
        typer.Option("--answer", help="Answer a question: NUMBER=same, NUMBER=different or NUMBER=unsure."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", help="Find the groups again with this model; your names and answers stay.")
    ] = None,
    known: Annotated[Path | None, typer.Option("--known", metavar="TABLE", help=KNOWN)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
) -> None:
    """Ask whether two photos show the same kind of thing.

    For photos or an index, it asks about the pair whose answer should settle the most photos; answers merge groups or
    keep them apart, and NAME.review/labels.csv is the table for `fit`. For a table of `lookalike discover`, pairs are
    drawn at random, so that 30 to 60 answers say how pure its groups are; NAME.answers.jsonl keeps them.
    """
    from lookalike.discover.table import is_table

    if is_table(Path(source)):
        check(model is None and known is None, "a table has its groups already: leave out --model and --known")
        _check_table(Path(source), answer or [], as_json)
    else:
        _mend(source, answer or [], model, known, as_json)


def _mend(source: str, answer: list[str], model: Path | None, known: Path | None, as_json: bool) -> None:
    from lookalike.discover.kept import LABELS
    from lookalike.discover.session import AGAIN, ReviewSession
    from lookalike.search import Index

    given = [_parsed(text) for text in answer]
    check(not given or known is None, "answers are about groups that were shown: give --known before them, alone")
    place = open_review(source, model, known, again=not given)
    session = ReviewSession(place, Index.open(source).store if Index.exists(source) else None)
    session.follow()
    for number, word in given:
        session.answer(number, word)
    question, table, count = session.question(), place / LABELS, len(session.answered)
    brought, again = session.brought, session.since >= AGAIN
    if as_json:
        shown = {"question": None if question is None else asdict(question), "answers": count}
        more = {"merges": session.merges, "brought": brought or None, "fit_again": again, "stop": session.stop or None}
        typer.echo(json.dumps(shown | more | {"table": str(table)}, indent=2, ensure_ascii=False))
        return
    typer.echo(f"Answers: {count:,}, merges: {session.merges:,}, table: {table}")
    if brought:
        typer.echo(brought)
    if again:
        typer.echo(f"{session.since:,} answers and changes since groups were found; a model can learn from them:")
        typer.echo("".join(f"  {command}\n" for command in session.commands), nl=False)
    if question is None:
        typer.echo("Nothing is left to ask about these groups.")
        return
    if session.stop:
        typer.echo(session.stop)
    depend = "1 photo depends" if question.photos == 1 else f"{question.photos:,} photos depend"
    worth = f"{question.chance:.0%} likely; {depend} on it"
    typer.echo(f"Question {question.number}: do these show the same kind ({worth})?")
    typer.echo(f"  {question.left}\n  {question.right}")
    typer.echo(f"Answer with: lookalike ask {source} --answer {question.number}=same (or different, unsure)")


def _check_table(table: Path, answer: list[str], as_json: bool) -> None:
    from lookalike.discover.checking import TableCheck

    checking = TableCheck(table)
    for number, word in map(_parsed, answer):
        checking.answer(number, word)
    question, result = checking.following, checking.checked
    if as_json:
        content = {"question": None if question is None else asdict(question), "answers": result.pairs}
        typer.echo(json.dumps(content | {"same": result.same, "purity": result.purity}, indent=2, ensure_ascii=False))
        return
    typer.echo(str(result))
    if question is not None:
        typer.echo(f"Question {question.number}: do these show the same kind ({question.label})?")
        typer.echo(f"  {question.left}\n  {question.right}")
        typer.echo(f"Answer with: lookalike ask {table} --answer {question.number}=same (or different, unsure)")


def _parsed(text: str) -> "tuple[int, Answer]":
    """The number and the word of NUMBER=WORD."""
    from lookalike.discover.mending import WORDS

    number, _, given = text.partition("=")
    word = next((word for word in WORDS if word == given), None)
    if word is None or not number.isdecimal() or len(number) > 9:
        raise UserError(f"'{text}' is no answer: give one as NUMBER={'|'.join(WORDS)}")
    return int(number), word
