"""An ONNX graph in half precision, or in int8 calibrated on photos, by ONNX Runtime's own tools.

int8 is static and in the QDQ format: 8-bit weights with a scale per channel, and activations whose range is that of the
calibration photos. Only the backbone is in int8: the head, the readout and the final normalisation, which cost almost
nothing, stay in float32, because every rounding there is a rounding of the embedding itself.
"""

import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from torch import Tensor

from lookalike.models.onnx_graph import library

Precision = Literal["float32", "float16", "int8"]
BACKBONE = "/embedder/backbone/"  # how the names of its nodes begin in a traced graph


def half(proto: Any) -> Any:
    """The graph in half precision; pixels and embeddings stay float32."""
    with _quiet():
        tools = library("onnxruntime.transformers.float16")
        return tools.convert_float_to_float16(proto, keep_io_types=True, op_block_list=[])


def int8(proto: Any, crops: Iterable[Float[Tensor, "1 c h w"]]) -> Any:
    """The graph with its backbone in int8; the ranges of activations are those of the `crops`."""
    onnx, tools = library("onnx"), library("onnxruntime.quantization")
    shapes = library("onnxruntime.quantization.shape_inference")
    name = proto.graph.input[0].name
    photos = ({name: np.ascontiguousarray(crop.numpy())} for crop in crops)
    with TemporaryDirectory() as folder, _quiet():
        whole, prepared, small = (str(Path(folder) / file) for file in ("whole.onnx", "prepared.onnx", "small.onnx"))
        onnx.save(proto, whole)
        shapes.quant_pre_process(whole, prepared, skip_symbolic_shape=True)
        nodes = [node.name for node in onnx.load(prepared).graph.node]
        tools.quantize_static(
            prepared,
            small,
            _Photos(photos),
            quant_format=tools.QuantFormat.QDQ,
            per_channel=True,
            activation_type=tools.QuantType.QUInt8,
            weight_type=tools.QuantType.QInt8,
            nodes_to_exclude=_outside(nodes),
        )
        return onnx.load(small)


def _outside(nodes: list[str]) -> list[str]:
    """The nodes that are not of the backbone; none in a network of the user's own, which may have no such part.

    >>> _outside(["/Sub", "node_Conv_1", "/embedder/backbone/relu/Relu", "/embedder/head/linear/Gemm"])
    ['/Sub', '/embedder/head/linear/Gemm']
    """
    named = any(node.startswith(BACKBONE) for node in nodes)
    # a convolution that was merged with its batch normalisation has lost its place in the name
    return [node for node in nodes if node.startswith("/") and not node.startswith(BACKBONE)] if named else []


class _Photos:
    """The calibration photos as ONNX Runtime reads them."""

    def __init__(self, photos: Iterator[dict[str, np.ndarray]]) -> None:
        self.photos = photos

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.photos, None)


@contextmanager
def _quiet() -> Iterator[None]:
    """The tools warn through the root logger and through warnings, about their own internals."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
