"""`lookalike push MODEL OWNER/NAME`: a model on the Hugging Face Hub."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "lookalike push run/model me/shoes --private"


def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a saved model, such as run/model.")],
    repository: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="The repository; it is created if need be.")],
    private: Annotated[bool, typer.Option("--private", help="A new repository is for you alone.")] = False,
) -> None:
    """Upload a model with its card to the Hugging Face Hub; others use it as hf:OWNER/NAME wherever MODEL stands.

    The token of HF_TOKEN or of `hf auth login` must be allowed to write there.
    """
    from lookalike.models import model_hub

    page = model_hub.push(model, repository, private)
    typer.echo(f"{page}: use it with hf:{repository.removeprefix(model_hub.PREFIX)}, for example in lookalike index")
