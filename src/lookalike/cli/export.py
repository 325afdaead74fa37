"""`lookalike export MODEL`: for programs without Python."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "lookalike export run/model --out model.onnx"


def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a saved model, such as run/model.")],
    out: Annotated[Path, typer.Option("--out", help="The .onnx file to write.")] = Path("model.onnx"),
) -> None:
    """Write a model as ONNX, checked against torch; its preprocessing is documented in the file and beside it."""
    from lookalike.models import Model, export_onnx

    loaded = Model.load(model)
    difference = export_onnx(loaded, out)
    how = loaded.preprocessing
    first = f"shorter side to {how.resize}, " if how.resize and not how.warp else ""
    first = f"both sides to {how.resize}, " if how.warp else first
    typer.echo(
        f"{out}: differs from torch by {difference:.0e} at most. It takes {first}the centre {how.crop} × {how.crop} as "
        f"float32 {'grey' if how.order == 'L' else 'RGB'} pixels 0 … 255; everything else is inside."
    )
