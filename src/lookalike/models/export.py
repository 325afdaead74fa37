"""Export to ONNX, and the proof that the file does what the model does.

The colours' order, mean and standard deviation and the final normalisation are in the graph: it takes the evaluation
crop as RGB (or grey) pixels 0 … 255 in float32, n × channels × crop × crop, and returns embeddings that are ready to
compare. Resizing and cropping are left to the caller; the file's metadata describe them under "preprocessing".
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import UserError, check
from lookalike.geometry import normalise
from lookalike.models.model import Model
from lookalike.models.onnx_graph import LIBRARIES, Session, graph, library
from lookalike.models.preprocess import scale

TOLERANCE = 1e-4  # largest difference between entries of an embedding, relative to the largest entry
BATCHES = (1, 3)  # sizes of the batches that are compared: the number of images must be free


class PixelsToEmbeddings(nn.Module):
    """A model as one function of pixels."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.embedder = model.embedder
        self.how = model.preprocessing
        self.geometry = model.geometry

    def forward(self, pixels: Float[Tensor, "n c h w"]) -> Float[Tensor, "n d"]:
        return normalise(self.embedder(scale(pixels, self.how)), self.geometry)


def export_onnx(model: Model, path: str | Path) -> float:
    """Write `model` as an ONNX file at `path` and run it; returns the largest relative difference from torch."""
    onnx, *_ = (library(name) for name in LIBRARIES)
    whole = deepcopy(PixelsToEmbeddings(model)).eval().cpu()  # the model stays where it is
    examples = [_pixels(model, count) for count in BATCHES]
    proto = graph(whole, examples[-1], "pixels")
    describe(onnx, proto, model)
    with checked_file(path) as partial:
        onnx.save(proto, str(partial))
        difference = _largest_difference(partial, whole, examples)
        close = difference <= TOLERANCE
        check(
            close,
            f"the ONNX file differs from torch by {difference:.1e}, more than {TOLERANCE:.0e}: it was not written",
        )
    return difference


@contextmanager
def checked_file(path: str | Path) -> Iterator[Path]:
    """A place for a file that appears at `path` only if nothing fails before the end."""
    path = Path(path)
    partial = path.with_name(f".{path.name}.partial")
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)


def _pixels(model: Model, count: int) -> Tensor:
    how = model.preprocessing
    generator = torch.Generator().manual_seed(count)
    return torch.rand(count, how.channels, how.crop, how.crop, generator=generator) * 255


def describe(onnx: Any, proto: Any, model: Model, **facts: str) -> None:
    """Write into the file how its pixels are prepared, where its embeddings are compared, and further `facts`."""
    how = {**model.preprocessing.as_dict(), "in_graph": ["order", "mean", "std"]}
    onnx.helper.set_model_props(proto, {"preprocessing": json.dumps(how), "geometry": model.geometry, **facts})


def _largest_difference(path: Path, whole: nn.Module, examples: list[Tensor]) -> float:
    session, worst = Session(path), 0.0
    for pixels in examples:
        with torch.no_grad():
            expected = whole(pixels)
        apart: Tensor = (session(pixels) - expected).abs().max() / expected.abs().max().clamp(min=1e-12)
        worst = max(worst, float(apart))
    return worst
