"""`lookalike advise DATA`: what to expect of a run, before it begins."""

from typing import Annotated

import typer

EXAMPLE = "lookalike advise photos/"


def run(
    source: Annotated[str, typer.Argument(metavar="DATA", help="A folder, a table, a data set, or dataset=folder.")],
) -> None:
    """Estimate how long training takes and what to expect.

    Describes the data, the recipe that suits them and a sensible number of minutes. A few images are read and embedded
    to measure the speed; nothing is trained or saved.
    """
    from lookalike.fit.advise import advise

    for line in advise(source):
        typer.echo(line)
