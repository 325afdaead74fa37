"""`lookalike analyse WHAT`: a look into losses, batches and runs; one file per sub-command."""

import shlex
from collections.abc import Callable
from typing import Annotated

import typer

from lookalike.cli import analyse_batch, analyse_pairs, analyse_spectrum
from lookalike.errors import UserError

app = typer.Typer(
    help="Analyse losses, batches and runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for name, verb in {"pairs": analyse_pairs, "batch": analyse_batch, "spectrum": analyse_spectrum}.items():
    app.command(name, epilog=f"Example: {verb.EXAMPLE}")(verb.run)


def moved(verb: str) -> Callable[[list[str] | None], None]:
    """A verb about a paper, which says where it went."""

    def run(
        words: Annotated[list[str] | None, typer.Argument(help="What follows the verb.")] = None,
    ) -> None:
        command = shlex.join(["python", "-m", "papers", verb, *(words or [])])
        raise UserError(f"`analyse {verb}` has moved: run `{command}` in a clone of the repository")

    return run


for name in ("theorems", "toy", "coverage", "setting"):
    as_given = {"ignore_unknown_options": True}
    app.command(name, hidden=True, add_help_option=False, context_settings=as_given)(moved(name))
