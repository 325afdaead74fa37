"""`lookalike export MODEL`: a model for programs without Python."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "lookalike export run/model --out model.onnx"


def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a saved model, such as run/model.")],
    out: Annotated[Path, typer.Option("--out", help="The .onnx file to write.")] = Path("model.onnx"),
) -> None:
    """Write a model as ONNX and check it against torch; its preprocessing is described in the file and beside it."""
    from lookalike.models import Model, export_onnx

    loaded = Model.load(model)
    difference = export_onnx(loaded, out)
    how = loaded.preprocessing
    side = "both sides" if how.warp else "shorter side"
    first = f"{side} to {how.resize}, " if how.resize else ""
    typer.echo(
        f"{out}: differs from torch by at most {difference:.0e}. Prepare images thus: {first}centre crop {how.crop} × "
        f"{how.crop}, float32 {'grey' if how.order == 'L' else 'RGB'} pixels 0 … 255; the file does everything else."
    )
