"""`lookalike advise DATA`: what to expect of a run, before it begins."""

from typing import Annotated

import typer

EXAMPLE = "lookalike advise photos/"


def run(
    source: Annotated[str, typer.Argument(metavar="DATA", help="A folder, a table, a name, or name=folder.")],
) -> None:
    """Say what the data look like, which recipe suits them, how many minutes are sensible, and what to expect.

    A few images are read and embedded to measure the speed; nothing is trained or kept.
    """
    from lookalike.fit.advise import advise

    for line in advise(source):
        typer.echo(line)
