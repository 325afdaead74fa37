"""`lookalike VERB`: one file per verb. Results on stdout, progress on stderr; a mistake is one line, exit code 2."""

import io
import os
import sys
from typing import Annotated, NoReturn

import typer

import lookalike
from lookalike.cli import (
    advise,
    analyse,
    ask,
    audit,
    backbones,
    calibrate,
    classify,
    compare,
    copy,
    discover,
    duplicates,
    embed,
    evaluate,
    export,
    fit,
    index,
    keys,
    labels,
    list_members,
    log,
    push,
    remove,
    report,
    search,
    serve,
    status,
    study,
    train,
    tune,
)
from lookalike.errors import EXIT_CODE, UserError

app = typer.Typer(
    name="lookalike",
    help="Learn embeddings in which look-alikes are neighbours, prove it on unseen classes, search with them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
VERBS = {
    "fit": fit,
    "train": train,
    "evaluate": evaluate,
    "embed": embed,
    "export": export,
    "push": push,
    "report": report,
    "compare": compare,
    "study": study,
    "tune": tune,
    "audit": audit,
    "advise": advise,
    "list": list_members,
    "index": index,
    "search": search,
    "calibrate": calibrate,
    "classify": classify,
    "discover": discover,
    "ask": ask,
    "duplicates": duplicates,
    "remove": remove,
    "labels": labels,
    "status": status,
    "copy": copy,
    "serve": serve,
    "keys": keys,
    "log": log,
}
for name, verb in VERBS.items():
    app.command(name, epilog=f"Example: {verb.EXAMPLE}")(verb.run)
app.add_typer(analyse.app, name="analyse")
app.add_typer(backbones.app, name="backbones")


def _print_version(requested: bool) -> bool:
    if requested:
        typer.echo(f"lookalike {lookalike.__version__}")
        raise typer.Exit
    return requested


@app.callback()
def _options(
    version: Annotated[
        bool | None, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of `lookalike` itself, before any verb."""


def main() -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):  # names of files need not be UTF-8, and what is printed may hold one
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except UserError as mistake:
        print(f"lookalike: {mistake}", file=sys.stderr)
        leave(EXIT_CODE)


def leave(code: int) -> NoReturn:
    """End this process with `code`; one of several ends without the interpreter's last steps.

    A thread of gloo that still waits for a peer that is gone would abort the process there, with code -6.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
