"""pgvector's `vector` on the wire: a count, an unused half-word, and float32 from the high byte on."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32
from psycopg import Connection
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

HEADER = struct.Struct(">HH")


class VectorDumper(Dumper):
    """A row of float32 as a vector, to the bit."""

    format = Format.BINARY

    def __init__(self, cls: type, context: Any = None) -> None:
        super().__init__(cls, context)
        self.oid = 0 if context is None else context.adapters.types.get_oid("vector")

    def dump(self, obj: Float32[np.ndarray, " d"]) -> bytes:
        return HEADER.pack(len(obj), 0) + obj.astype(">f4").tobytes()


class VectorLoader(Loader):
    """A vector as a row of float32."""

    format = Format.BINARY

    def load(self, data: Any) -> Float32[np.ndarray, " d"]:
        return np.frombuffer(data, ">f4", offset=HEADER.size).astype(np.float32)


def vectors(contents: Sequence[bytes], dim: int) -> Float32[np.ndarray, "n d"]:
    """Vectors of `vector_send`, all at once."""
    layout = np.dtype([("header", f"V{HEADER.size}"), ("numbers", ">f4", (dim,))])
    return np.frombuffer(b"".join(contents), layout)["numbers"].astype(np.float32)


def register(connection: Connection[Any]) -> bool:
    """Teach a connection to speak of vectors; whether the database knows them."""
    row = connection.execute("SELECT to_regtype('vector')::oid, to_regtype('vector[]')::oid").fetchone()
    if row is None or row[0] is None:
        return False
    TypeInfo("vector", row[0], row[1]).register(connection)
    connection.adapters.register_dumper(np.ndarray, VectorDumper)
    connection.adapters.register_loader("vector", VectorLoader)
    return True


def registered(connection: Connection[Any]) -> bool:
    return connection.adapters.types.get("vector") is not None
