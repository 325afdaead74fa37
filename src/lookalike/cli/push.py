"""`lookalike push MODEL OWNER/NAME`: a model on the Hugging Face Hub."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "lookalike push run/model me/shoes --private"


def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a saved model, such as run/model.")],
    repository: Annotated[
        str, typer.Argument(metavar="OWNER/NAME", help="The repository. It is created if it does not exist.")
    ],
    private: Annotated[bool, typer.Option("--private", help="If the repository is new, make it private.")] = False,
) -> None:
    """Upload a model and its card to the Hugging Face Hub.

    Others can then write hf:OWNER/NAME wherever a command takes a MODEL. You need a token that may write there, from
    HF_TOKEN or `hf auth login`.
    """
    from lookalike.models import model_hub

    page = model_hub.push(model, repository, private)
    typer.echo(f"{page}: use it with hf:{repository.removeprefix(model_hub.PREFIX)}, for example in lookalike index")
