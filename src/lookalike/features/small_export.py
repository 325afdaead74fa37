"""A model as a small ONNX file, proven by retrieval: what it loses on classes never seen in training is measured.

The file and the model search the same photos. The figures of both are written into the file's metadata, and a file that
loses more recall@1 than allowed is not written.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.data import Dataset
from lookalike.errors import UserError, check, unknown
from lookalike.evaluation import Result, compare, evaluate
from lookalike.evaluation.statistics.paired import Difference
from lookalike.features.embedding import embed
from lookalike.models import Model
from lookalike.models.encoding import batched
from lookalike.models.export import PixelsToEmbeddings, checked_file, describe
from lookalike.models.onnx_graph import LIBRARIES, Session, half, int8, library, traced_graph
from lookalike.models.preprocess import as_pixels, evaluation_view, rgb_or_grey
from lookalike.progress import Progress

PRECISIONS = ("float16", "int8")
METRICS = ["recall@1", "map@r"]
CALIBRATION = 256  # photos; 64 and 128 lost more on CUB's and cars' train classes (docs/models.md)
MOST_LOST = 0.005  # of recall@1: half a point


@dataclass(frozen=True)
class Proof:
    """What a small file is worth, beside the model in float32.

    file: its figures on photos of classes that the model was not trained on, each searched among all others.
    model: those of the model, on the same photos.
    calibration: on how many photos the ranges were measured; 0: none are needed.
    """

    file: Result
    model: Result
    calibration: int

    @property
    def photos(self) -> int:
        """How many were searched."""
        return len(self.file.labels)

    @property
    def gains(self) -> list[Difference]:
        """The file's figures minus the model's, in pairs of photos, with 95% intervals over classes."""
        results = {"float32": self.model, "file": self.file}
        return [part for part in compare(results, METRICS, over="classes").differences if part.name == "file"]


def export_small(
    model: Model,
    dataset: Dataset,
    path: str | Path,
    precision: str,
    most_lost: float = MOST_LOST,
    progress: Progress | None = None,
) -> Proof:
    """Write `model` to `path` in `precision` ("float16" or "int8"), and prove it on the photos of `dataset`.

    Classes that the model was trained on serve the calibration of int8, which needs some of them, the others the proof.
    `most_lost`: the file is refused if it loses more recall@1 than this.
    """
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS)
    onnx, *_ = (library(name) for name in LIBRARIES)
    seen = torch.tensor([name in set(model.classes) for name in dataset.label_names])[dataset.labels]
    check(not bool(seen.all()), f"the model was trained on every class of {dataset.name}: give photos of other classes")
    unseen, known = dataset.subset(torch.nonzero(~seen)[:, 0]), dataset.subset(torch.nonzero(seen)[:, 0])
    check(
        precision != "int8" or len(known) > 0,
        f"int8 is calibrated on classes that the model was trained on, and {dataset.name} has photos of none: add some "
        "or take float16",
    )
    calibration = _some(known) if precision == "int8" else None
    whole = PixelsToEmbeddings(model).eval().cpu()
    size = model.preprocessing.crop
    example = torch.zeros(3, model.preprocessing.channels, size, size)
    try:
        proto = traced_graph(whole, example, "pixels")
        small = half(proto) if calibration is None else int8(proto, _crops(model, calibration, 1))
    except Exception as error:  # exporters fail in ways of their own
        raise UserError(
            f"this network cannot be exported in {precision}: {' '.join(str(error).split())[:200]}"
        ) from error
    with checked_file(path) as partial:
        onnx.save(small, str(partial))
        file = _figures(model, torch.cat([Session(partial)(crops) for crops in _crops(model, unseen, 16)]), unseen)
        float32 = _figures(model, embed(model, unseen, progress, "auto"), unseen)
        lost = float32["recall@1"] - file["recall@1"]
        check(
            lost <= most_lost,
            f"the {precision} file loses {100 * lost:.2f} points of recall@1 on {len(unseen):,} photos, more than "
            f"{100 * most_lost:g}: it was not written",
        )
        proof = Proof(file, float32, 0 if calibration is None else len(calibration))
        describe(onnx, small, model, precision=precision, **_facts(proof))
        onnx.save(small, str(partial))
    return proof


def _some(dataset: Dataset) -> Dataset:
    order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(0))
    return dataset.subset(order[:CALIBRATION])


def _crops(model: Model, dataset: Dataset, at_once: int) -> Iterator[Float[Tensor, "n c h w"]]:
    """The photos as the file takes them."""

    def crop(row: int) -> Tensor:
        view = evaluation_view(as_pixels(dataset.images.open(row).decode()), model.preprocessing)
        return rgb_or_grey(view, model.preprocessing)[None].float()

    return batched(crop, len(dataset), at_once)


def _figures(model: Model, embeddings: Tensor, dataset: Dataset) -> Result:
    return evaluate(embeddings, dataset.labels, metrics=METRICS, normalise=model.geometry)


def _facts(proof: Proof) -> dict[str, str]:
    figures = {name: f"{proof.file[name]:.4f}" for name in METRICS}
    float32 = {f"{name} of float32": f"{proof.model[name]:.4f}" for name in METRICS}
    return {**figures, **float32, "photos": str(proof.photos), "calibration": str(proof.calibration)}
