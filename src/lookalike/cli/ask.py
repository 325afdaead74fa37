"""`lookalike ask photos/`: same or different? The question whose answer brings most, or how pure a table is."""

import json
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lookalike.cli.discover import KNOWN, tell_unused
from lookalike.errors import UserError, check
from lookalike.files import printable

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
    from lookalike.discover.session import AGAIN, Session
    from lookalike.search import Index

    given = [_parsed(text) for text in answer]
    check(not given or known is None, "answers are about groups that were shown: give --known before them, alone")
    place = begun(source, model, known, anew=not given)
    session = Session(place, Index.open(source).store if Index.exists(source) else None)
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


def begun(source: str, model: Path | None, known: Path | None = None, anew: bool = True) -> Path:
    """The folder of a review; groups are found where there are none, or `anew`: by another model, or of other photos.

    The labels of the table `known` stay known until there is another one.
    """
    from lookalike.discover import kept, photos
    from lookalike.search.stores.places import review_folder

    check("://" not in source, "answers are kept in a folder beside the index: an index in a database has none")
    place = review_folder(source)
    before = kept.load(place) if kept.is_begun(place) else None
    if before is not None and place == Path(source).expanduser():  # the review itself, wherever its photos are
        check(
            model is None and known is None, "give the photos or the index, not their review, with --model or --known"
        )
        return place
    state = photos.state_of(source)
    if before is None:
        tell_unused(source, known)
    else:
        changes = {
            "Photos have come or gone": before.state != state,
            "The known labels are others": known is not None and photos.labels_of(known) != before.photos.given,
            "This is another model": photos.fingerprint_of(model) not in ("", before.photos.fingerprint),
        }
        if not anew or not any(changes.values()):
            return place
        changed = next(words for words, true in changes.items() if true)
        typer.echo(f"{changed}: groups are found anew, and everything that you said stays.", err=True)
        model = model or (Path(before.photos.model) if before.photos.model else None)
    _find_groups(source, place, state, model, known, {} if before is None else before.photos.given)
    return place


def _find_groups(
    source: str, place: Path, state: str, model: Path | None, known: Path | None, labels: dict[str, str]
) -> None:
    from lookalike.cli.allocator import keep_memory
    from lookalike.cli.bars import bar
    from lookalike.discover import kept, photos
    from lookalike.discover.beginning import begin
    from lookalike.discover.grouping import hierarchy

    kept.check_geometry(photos.geometry_of(source, model))
    keep_memory()
    with ExitStack() as shown:
        given = photos.photos(source, model, lambda name: shown.enter_context(bar(name)), known)
    if known is None and not given.ids:
        given = given.labelled(labels)
        lost = len(labels) - len(given.given)
        if lost:
            typer.echo(
                f"Known labels without their photo: {lost:,}. If photos have moved, give --known again.", err=True
            )
    with bar("comparing photos") as progress:
        merged = hierarchy(given.vectors, given.known, geometry=given.geometry, progress=progress)
    begin(place, given, merged, state)
    for name, why in given.unreadable:
        typer.echo(f"unreadable: {printable(name)}: {why}", err=True)


def _check_table(table: Path, answer: list[str], as_json: bool) -> None:
    from lookalike.discover.checking import TableCheck

    asked = TableCheck(table)
    for number, word in map(_parsed, answer):
        asked.answer(number, word)
    question, result = asked.following, asked.checked
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
