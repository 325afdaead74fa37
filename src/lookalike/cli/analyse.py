"""`lookalike analyse WHAT`: a look into losses, batches, theorems, the toy, and runs; one file per sub-command."""

import typer

from lookalike.cli import (
    analyse_batch,
    analyse_coverage,
    analyse_pairs,
    analyse_setting,
    analyse_spectrum,
    analyse_theorems,
    analyse_toy,
)

app = typer.Typer(
    help="Look into losses, batches, theorems, the toy and runs: tables, and figures with their numbers.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for name, verb in {
    "pairs": analyse_pairs,
    "theorems": analyse_theorems,
    "batch": analyse_batch,
    "toy": analyse_toy,
    "spectrum": analyse_spectrum,
    "setting": analyse_setting,
    "coverage": analyse_coverage,
}.items():
    app.command(name, epilog=f"Example: {verb.EXAMPLE}")(verb.run)
