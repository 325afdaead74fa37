"""What computes a network: torch, or ONNX Runtime, which takes a half to two thirds of the time on a CPU.

A graph is used only after its embeddings have been compared with torch's: at length 1, no coordinate may differ by more
than 1e-5. Graph and difference are cached under the model's fingerprint, so each model is exported and compared once.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.cache import loaded
from lookalike.errors import UserError, check, unknown
from lookalike.files import read_json, sha256
from lookalike.geometry import Geometry, normalise
from lookalike.models import onnx_graph

BackendName = Literal["torch", "onnx", "auto"]
TOLERANCE = 1e-5
KIND, GRAPH, CHECK = "onnx", "graph.onnx", "check.json"
BATCHES = (1, 3, 16)  # sizes that are compared


class Normalised(nn.Module):
    """A network and the geometry of its embeddings."""

    def __init__(self, embedder: nn.Module, geometry: Geometry) -> None:
        super().__init__()
        self.embedder, self.geometry = embedder, geometry

    def forward(self, inputs: Float[Tensor, "n c h w"]) -> Float[Tensor, "n d"]:
        return normalise(self.embedder(inputs).float(), self.geometry)


@dataclass(frozen=True)
class Backend:
    """`run` turns network inputs into embeddings on the CPU; `note` says why ONNX Runtime was not chosen."""

    name: str
    run: Callable[[Tensor], Tensor]
    note: str = ""


class Graph(NamedTuple):
    """A graph on disk, and how far its embeddings are from torch's; or why there is none."""

    path: Path
    difference: float
    problem: str = ""

    @property
    def fault(self) -> str:
        """Why the graph cannot be used; empty: it can."""
        if self.problem:
            return f"this network cannot be exported ({self.problem})"
        differs = not self.difference <= TOLERANCE
        return f"the embeddings of the exported graph differ from torch's by {self.difference:.1e}" if differs else ""


def possible() -> bool:
    """Whether ONNX Runtime and what exports to it are installed."""
    return all(map(find_spec, onnx_graph.LIBRARIES))


def choose(name: BackendName, network: Normalised, inputs: tuple[int, ...], fingerprint: str | None) -> Backend:
    """The backend for a network in evaluation mode whose inputs have this shape (channels, height, width).

    "auto" is ONNX Runtime where it is installed, the network is on the CPU and its graph gives the same embeddings.
    Without a `fingerprint` (a network of the user's own) nothing can be cached, and "auto" is torch.
    """
    if name not in get_args(BackendName):
        raise unknown("backend", name, get_args(BackendName))
    device = next((parameter.device for parameter in network.parameters()), torch.device("cpu"))
    usable = device.type == "cpu" and fingerprint is not None and possible()
    if name == "torch" or (name == "auto" and not usable):
        return _torch(network, device)
    try:
        check(device.type == "cpu", f"ONNX Runtime is used on the CPU, and this model is on {device}")
        return Backend("onnx", _session(network, inputs, fingerprint))
    except UserError as error:
        if name == "onnx":
            raise UserError(f"{error}; or choose backend torch") from error
        return _torch(network, device, f"torch computes the embeddings: {error}")


def _torch(network: Normalised, device: torch.device, note: str = "") -> Backend:
    @torch.no_grad()
    def run(inputs: Tensor) -> Tensor:
        embeddings: Tensor = network(inputs.to(device)).cpu()
        return embeddings

    return Backend("torch", run, note)


def _session(network: Normalised, inputs: tuple[int, ...], fingerprint: str | None) -> onnx_graph.Session:
    """The network in ONNX Runtime; a graph that cannot be used is a UserError."""
    if fingerprint is None:
        with TemporaryDirectory() as folder:
            return _opened(_write(Path(folder), network, inputs))
    key = _key(fingerprint, inputs)
    graph, session = loaded(KIND, key, lambda folder: _export(folder, network, inputs), _read)
    return session or _opened(graph)


def _read(folder: Path) -> tuple[Graph, onnx_graph.Session | None]:
    """The graph as it was exported, and its session where it can be used; a bit that has changed is a ValueError."""
    facts = read_json(folder / CHECK)
    if facts.pop("digest") != _digest(folder / GRAPH):
        raise ValueError(f"{folder / GRAPH} is damaged")
    graph = Graph(folder / GRAPH, **facts)
    return graph, None if graph.fault else onnx_graph.Session(graph.path)


def _digest(path: Path) -> str:
    return sha256(path) if path.exists() else ""  # there is none of a network that cannot be exported


def _opened(graph: Graph) -> onnx_graph.Session:
    check(not graph.fault, graph.fault)
    return onnx_graph.Session(graph.path)


def _key(fingerprint: str, inputs: tuple[int, ...]) -> str:
    versions = [torch.__version__, *(str(onnx_graph.library(name).__version__) for name in onnx_graph.LIBRARIES)]
    return blake2b(" ".join([fingerprint, str(inputs), *versions]).encode(), digest_size=16).hexdigest()


def _export(folder: Path, network: Normalised, inputs: tuple[int, ...]) -> None:
    written = _write(folder, network, inputs)
    facts = {"difference": written.difference, "problem": written.problem, "digest": _digest(written.path)}
    (folder / CHECK).write_text(json.dumps(facts), encoding="utf-8")


def _write(folder: Path, network: Normalised, inputs: tuple[int, ...]) -> Graph:
    """Export the network, and compare both on noise."""
    onnx = onnx_graph.library("onnx")
    path = folder / GRAPH
    generator = torch.Generator().manual_seed(0)
    batches = [torch.randn(count, *inputs, generator=generator) for count in BATCHES]
    written = Graph(path, 0.0)
    for export in (onnx_graph.traced_graph, onnx_graph.graph):
        try:
            onnx.save(export(network, batches[1], "inputs"), str(path))
            written = Graph(path, _difference(network, onnx_graph.Session(path), batches))
        except OSError as error:
            raise UserError(f"cannot write {path} ({error.strerror or error})") from error
        except Exception as error:  # exporters and the runtime fail in ways of their own
            written = Graph(path, 0.0, _first_line(error))
        if not written.fault:
            break
    return written


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


@torch.no_grad()
def _difference(network: Normalised, session: onnx_graph.Session, batches: list[Tensor]) -> float:
    worst = 0.0
    for inputs in batches:
        pair: Any = (network(inputs), session(inputs))
        one, other = (normalise(embeddings, "sphere") for embeddings in pair)
        worst = max(worst, float((one - other).abs().max().nan_to_num(nan=torch.inf)))
    return worst
