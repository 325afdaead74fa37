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
    review,
    search,
    serve,
    status,
    study,
    train,
    tune,
    upgrade,
)
from lookalike.errors import EXIT_CODE, UserError

app = typer.Typer(
    name="lookalike",
    help="Train image embeddings, test them on classes they have never seen, and search with them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
VERBS = {
    "fit": fit,
    "advise": advise,
    "audit": audit,
    "report": report,
    "index": index,
    "search": search,
    "calibrate": calibrate,
    "serve": serve,
    "classify": classify,
    "duplicates": duplicates,
    "labels": labels,
    "status": status,
    "remove": remove,
    "upgrade": upgrade,
    "copy": copy,
    "keys": keys,
    "log": log,
    "discover": discover,
    "review": review,
    "ask": ask,
    "train": train,
    "evaluate": evaluate,
    "embed": embed,
    "export": export,
    "push": push,
    "list": list_members,
    "study": study,
    "tune": tune,
    "compare": compare,
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
    except UserError as mistake:  # it may quote a file of a stranger's, and terminals obey what they are told
        from lookalike.files import printable

        print("lookalike:", "\n".join(map(printable, str(mistake).split("\n"))), file=sys.stderr)
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
