"""`lookalike export MODEL`: a model for programs without Python, in float32 or smaller."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lookalike.cli.bars import bar
from lookalike.errors import check

EXAMPLE = "lookalike export run/model --out model.onnx --precision int8 --photos photos/"


def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model, such as run/model, or hf:OWNER/NAME.")],
    out: Annotated[Path, typer.Option("--out", help="The .onnx file to write.")] = Path("model.onnx"),
    precision: Annotated[
        str,
        typer.Option(
            "--precision", help="float32, float16 (half the size) or int8 (smaller still, and faster on a CPU)."
        ),
    ] = "float32",
    photos: Annotated[
        str | None,
        typer.Option(
            "--photos",
            metavar="DATA",
            help="For float16 and int8: labelled photos. The classes of the training calibrate int8, others test it.",
        ),
    ] = None,
    most_lost: Annotated[
        float,
        typer.Option("--most-lost", help="Refuse a file that loses more percentage points of recall@1 than this."),
    ] = 0.5,
) -> None:
    """Write a model as an ONNX file and check that file.

    A float32 file is compared with torch, a smaller one is tested by retrieval on unseen classes. The metadata of the
    file hold its preprocessing and, for float16 and int8, its accuracy next to that of the model.
    """
    from lookalike.models import Model, export_onnx

    check(
        precision == "float32" or photos is not None,
        f"give labelled photos to prove the {precision} file on, as in: --photos photos/",
    )
    loaded = Model.load(model)
    if photos is None or precision == "float32":
        verdict = f"differs from torch by at most {export_onnx(loaded, out):.0e}."
    else:
        verdict = _small(loaded, out, precision, photos, most_lost / 100)
    typer.echo(f"{out}: {verdict} {_recipe(loaded.preprocessing)}")


def _small(model: Any, out: Path, precision: str, photos: str, most_lost: float) -> str:
    from lookalike import data
    from lookalike.cli.images import readable_images
    from lookalike.features import export_small

    images = readable_images(data.load(photos))
    with bar("searching unseen classes") as progress:
        proof = export_small(model, images, out, precision, most_lost, progress)
    figures = ", ".join(
        f"{gain.metric} {gain.value:.3f} ({gain.difference:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}] against float32)"
        for gain in proof.gains
    )
    calibrated = f", calibrated on {proof.calibration:,} photos" if proof.calibration else ""
    return f"{precision}{calibrated}; {figures} on {proof.photos:,} photos of unseen classes."


def _recipe(how: Any) -> str:
    """How a program prepares the pixels."""
    side = "both sides" if how.warp else "the shorter side"
    first = f"resize {side} to {how.resize} ({how.interpolation}, with antialiasing), " if how.resize else ""
    colours = "grey" if how.order == "L" else "RGB"
    return (
        f"Prepare each image like this: {first}cut out the centre, {how.crop} × {how.crop}, and pass {colours} pixels "
        "0 … 255 as float32, n × channels × rows × columns. The file does the rest."
    )
