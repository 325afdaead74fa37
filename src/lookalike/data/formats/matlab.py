"""Reads the .mat files of Cars196: MATLAB level 5, numbers, strings and arrays of structures, compressed or not.

Written from the published description of the format: nothing else here needs SciPy.
"""

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.errors import UserError
from lookalike.files import read_regular

NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
    16: "u1",
    17: "u2",
}
LARGEST = 1 << 28  # bytes; those of Cars196 have less than one million
MATRIX, COMPRESSED = 14, 15
CELL, STRUCTURE, CHARACTERS, FIRST_NUMBER = 1, 2, 4, 6


def read_mat(path: Path) -> dict[str, Any]:
    """The variables of a file. Structures become lists of dicts, cells lists, strings str, numbers flat arrays."""
    try:
        data = read_regular(path, LARGEST)
    except OSError as error:
        raise UserError(f"'{path}' cannot be read ({error.strerror}): unpack it again") from None
    if len(data) < 128 or data[126:128] not in (b"IM", b"MI"):
        raise UserError(f"'{path}' is not a MATLAB level 5 file: unpack it again")
    order = "<" if data[126:128] == b"IM" else ">"
    variables, place = {}, 128
    try:
        while place < len(data):
            kind, body, place = _element(data, place, order)
            if kind == COMPRESSED:
                kind, body, _ = _element(zlib.decompress(body), 0, order)
            if kind == MATRIX:
                name, value = _matrix(body, order)
                variables[name] = value
    except (struct.error, zlib.error, ValueError, IndexError, KeyError, UnicodeDecodeError):
        raise UserError(f"'{path}' is damaged after {place} bytes: unpack it again") from None
    return variables


def _element(data: bytes, place: int, order: str) -> tuple[int, bytes, int]:
    """Type and content of the element at `place`, and the place of the next one."""
    kind, size = struct.unpack_from(order + "II", data, place)
    if kind >> 16:  # small elements keep up to four bytes within the tag
        size, kind = kind >> 16, kind & 0xFFFF
        return kind, data[place + 4 : place + 4 + size], place + 8
    begin = place + 8
    if begin + size > len(data):
        raise ValueError
    padding = 0 if kind == COMPRESSED else -size % 8
    return kind, data[begin : begin + size], begin + size + padding


def _parts(body: bytes, order: str) -> list[tuple[int, bytes]]:
    parts, place = [], 0
    while place < len(body):
        kind, content, place = _element(body, place, order)
        parts.append((kind, content))
    return parts


def _numbers(part: tuple[int, bytes], order: str) -> np.ndarray:
    return np.frombuffer(part[1], order + NUMBERS[part[0]])


def _matrix(body: bytes, order: str) -> tuple[str, Any]:
    """Name and value of a matrix element: flags, dimensions, name, then what its class needs."""
    if not body:
        return "", np.zeros(0)
    parts = _parts(body, order)
    form = int(_numbers(parts[0], order)[0]) & 0xFF
    count = int(np.prod(_numbers(parts[1], order)))
    name = parts[2][1].decode("ascii")
    if form == CELL:
        return name, [_matrix(content, order)[1] for _, content in parts[3:]]
    if form == STRUCTURE:
        return name, _structures(parts[3:], count, order)
    if form == CHARACTERS:
        kind, content = parts[3]
        return name, content.decode("utf-8") if kind in (1, 2, 16) else "".join(map(chr, _numbers(parts[3], order)))
    if form < FIRST_NUMBER:
        return name, None  # objects and sparse matrices, which no file of ours has
    return name, _numbers(parts[3], order)


def _structures(parts: list[tuple[int, bytes]], count: int, order: str) -> list[dict[str, Any]]:
    length = int(_numbers(parts[0], order)[0])
    names = [parts[1][1][at : at + length].split(b"\0")[0].decode("ascii") for at in range(0, len(parts[1][1]), length)]
    values = [_matrix(content, order)[1] for _, content in parts[2:]]
    if len(values) != count * len(names):
        raise ValueError
    return [dict(zip(names, values[at : at + len(names)], strict=True)) for at in range(0, len(values), len(names))]
