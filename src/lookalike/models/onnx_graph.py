"""A network as an ONNX graph, and the graph in ONNX Runtime."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lookalike.errors import UserError, install

LIBRARIES = ("onnx", "onnxscript", "onnxruntime")
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


@contextmanager
def _quiet() -> Iterator[None]:
    """Exporters warn about their own internals."""
    level = logging.getLogger("torch.onnx").level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        try:
            yield
        finally:
            logging.getLogger("torch.onnx").setLevel(level)


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
