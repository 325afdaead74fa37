"""A network as an ONNX graph, in half precision or int8 by ONNX Runtime's own tools, and the graph in ONNX Runtime.

int8 is static and in the QDQ format: 8-bit weights with a scale per channel, and activations whose range is that of the
calibration photos. Only the backbone is in int8: the head, the readout and the final normalisation, which cost almost
nothing, stay in float32, because every rounding there is a rounding of the embedding itself.
"""

import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import UserError, install

LIBRARIES = ("onnx", "onnxscript", "onnxruntime")
BACKBONE = "/embedder/backbone/"  # how the names of its nodes begin in a traced graph
AT_ONCE = 4  # images: more do not stay in the processor's cache (benchmarks/encode.py)


def library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise UserError(f"export needs {name}: {install('export')}") from error


def graph(network: nn.Module, example: Tensor, name: str) -> Any:
    """The graph of a network for any number of inputs, which are called `name`."""
    with _quiet():
        program: Any = torch.onnx.export(
            network,
            (example,),
            input_names=[name],
            output_names=["embeddings"],
            dynamic_shapes=({0: torch.export.Dim("images", min=1)},),
            dynamo=True,
            verbose=False,
        )
    return program.model_proto


def traced_graph(network: nn.Module, example: Tensor, name: str) -> Any:
    """The same from a trace: it takes a second where `graph` takes ten, but torch may drop it."""
    onnx, _, optimizer = library("onnx"), library("onnxscript"), library("onnxscript.optimizer")
    buffer = BytesIO()
    with _quiet():
        torch.onnx.export(
            network,
            (example,),
            buffer,  # type: ignore[arg-type]
            input_names=[name],
            output_names=["embeddings"],
            dynamic_axes={name: {0: "images"}, "embeddings": {0: "images"}},
            dynamo=False,
            verbose=False,
        )
        return optimizer.optimize(onnx.load_from_string(buffer.getvalue()))


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
            _CalibrationPhotos(photos),
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


class _CalibrationPhotos:
    """The calibration photos as ONNX Runtime reads them."""

    def __init__(self, photos: Iterator[dict[str, np.ndarray]]) -> None:
        self.photos = photos

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.photos, None)


@contextmanager
def _quiet() -> Iterator[None]:
    """Exporters and tools warn about their own internals, through loggers and through warnings."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


class Session:
    """A graph that is ready to run on the CPU, with as many threads as torch has."""

    def __init__(self, path: Path) -> None:
        runtime = library("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors
        self.session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.name = self.session.get_inputs()[0].name

    def __call__(self, inputs: Tensor) -> Tensor:
        parts = [np.ascontiguousarray(part.numpy()) for part in torch.split(inputs, AT_ONCE)]
        return torch.from_numpy(np.concatenate([self.session.run(None, {self.name: part})[0] for part in parts]))
