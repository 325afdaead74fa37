"""`lookalike analyse WHAT`: a look into losses, batches and runs; one file per sub-command."""

import shlex

import typer

from lookalike.cli import analyse_batch, analyse_pairs, analyse_spectrum
from lookalike.errors import UserError

app = typer.Typer(
    help="Look into losses, batches and runs: tables, and figures with their numbers.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for name, verb in {"pairs": analyse_pairs, "batch": analyse_batch, "spectrum": analyse_spectrum}.items():
    app.command(name, epilog=f"Example: {verb.EXAMPLE}")(verb.run)


def moved(context: typer.Context) -> None:
    """A verb about a paper: it says where it went, whatever follows it."""
    verb = context.info_name or ""
    command = shlex.join(["python", "-m", "papers", verb, *context.args])
    raise UserError(f"`analyse {verb}` has moved: run `{command}` in a clone of the repository")


for name in ("theorems", "toy", "coverage", "setting"):
    settings = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(name, hidden=True, add_help_option=False, context_settings=settings)(moved)
