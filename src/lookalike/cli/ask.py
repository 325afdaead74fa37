"""`lookalike ask photos/`: same or different? The question whose answer brings most, or how pure a table is."""

import json
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lookalike.errors import check

EXAMPLE = "lookalike ask photos/ --answer 1=same"


def run(
    source: Annotated[
        str,
        typer.Argument(metavar="PHOTOS|INDEX|TABLE", help="Photos or an index, or the table of lookalike discover."),
    ],
    answer: Annotated[
        list[str] | None, typer.Option("--answer", help="NUMBER=same, NUMBER=different or NUMBER=unsure.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", help="A saved model to compare photos by, at the first question.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
) -> None:
    """Show the next pair of photos to compare, and keep answers.

    Of photos or an index, the pair is the one whose answer is expected to bring most photos into their group; answers
    merge groups or keep them apart at once, and NAME.review/labels.csv is the table for fit. Of a table, pairs are
    drawn at random, so that thirty to sixty answers bound the purity of all groups; NAME.answers.jsonl keeps them.
    """
    if Path(source).suffix == ".csv":
        check(model is None, "a table has its groups already: leave out --model")
        _check_table(Path(source), answer or [], as_json)
    else:
        _mend(source, answer or [], model, as_json)


def _mend(source: str, answer: list[str], model: Path | None, as_json: bool) -> None:
    from lookalike.discover import answers
    from lookalike.discover.session import AGAIN, LABELS, Session, folder_of

    place = folder_of(source)
    given = [answers.parsed(text) for text in answer]
    if not place.is_dir():
        _begin(source, model, place)
    else:
        check(model is None, f"'{place}' has its groups already: leave out --model, or delete it to begin again")
    session = Session(place)
    for number, word in given:
        session.answer(number, word)
    question, table = session.question(), place / LABELS
    if as_json:
        content = {"question": None if question is None else asdict(question), "answers": session.answers}
        typer.echo(json.dumps(content | {"merges": session.merges, "table": str(table)}, indent=2, ensure_ascii=False))
        return
    typer.echo(f"{session.answers:,} answers, {session.merges:,} merges: {table}")
    if session.answers and session.answers % AGAIN == 0:
        typer.echo(f"Learn from the groups as they are now: lookalike fit {table} --out run")
    if question is None:
        typer.echo("Nothing is left to ask about these groups.")
        return
    worth = f"{question.chance:.0%} likely; {question.photos:,} photos depend on it"
    typer.echo(f"Question {question.number}: do these show the same kind ({worth})?")
    typer.echo(f"  {question.left}\n  {question.right}")
    typer.echo(f"Answer with: lookalike ask {source} --answer {question.number}=same (or different, unsure)")


def _begin(source: str, model: Path | None, place: Path) -> None:
    from lookalike.cli.allocator import keep_memory
    from lookalike.cli.bars import bar
    from lookalike.discover import photos
    from lookalike.discover.grouping import hierarchy
    from lookalike.discover.session import begin

    keep_memory()
    with ExitStack() as shown:
        given = photos.photos(source, model, lambda name: shown.enter_context(bar(name)))
    with bar("comparing photos") as progress:
        merged = hierarchy(given.vectors, given.known, geometry=given.geometry, progress=progress)
    begin(place, given, merged)


def _check_table(table: Path, answer: list[str], as_json: bool) -> None:
    from lookalike.discover import answers
    from lookalike.discover.questions import answered, checked, questions
    from lookalike.discover.table import read

    asked = questions(read(table))
    for number, word in [answers.parsed(text) for text in answer]:
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
