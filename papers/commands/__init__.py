"""`python -m papers VERB`: one file per verb. Results on stdout, progress on stderr; a mistake has exit code 2."""

import sys

import typer

from lookalike.errors import EXIT_CODE, UserError
from papers.commands import coverage, page, reproduce, setting, theorems, toy

app = typer.Typer(
    name="python -m papers",
    help="Reproduce the five papers: their studies, the page that judges their claims, the statements that they prove.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
VERBS = {
    "reproduce": reproduce,
    "page": page,
    "theorems": theorems,
    "toy": toy,
    "coverage": coverage,
    "setting": setting,
}
for name, verb in VERBS.items():
    app.command(name, epilog=f"Example: {verb.EXAMPLE}")(verb.run)


def main() -> None:
    try:
        app()
    except UserError as mistake:
        print(f"papers: {mistake}", file=sys.stderr)
        sys.exit(EXIT_CODE)
