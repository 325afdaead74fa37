"""Reading vectors made elsewhere into an index, with ids and whatever else is known of each row.

They are .npz and .npy of NumPy, Parquet, or the shards of many workers.
"""

import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.errors import UserError, check, install
from lookalike.features.shards import Shards, is_shards
from lookalike.files import printable, read_array, read_arrays
from lookalike.progress import Progress
from lookalike.search.adding.sources import RESERVED
from lookalike.search.adding.update import Update
from lookalike.search.items import Item, Stamp, Value, Vectors
from lookalike.search.queries import placed
from lookalike.search.stores import Store

VECTORS = ("embeddings", "vectors", "vector", "embedding")  # what their column may be called
SINGULAR = {
    "ids": "id",
    "labels": "label",
    "paths": "path",
    "categories": "category",
    "splits": "split",
    "roles": "role",
}
OPTIONAL = ("category", "split", "role")  # an empty one is none
STAMP = ("file_size", "file_time", "file_digest")  # by which a later update knows a file again
BULK = 10_000  # vectors of one transaction


def holds_vectors(source: object) -> bool:
    """Whether a source is a file of vectors rather than of images."""
    if not isinstance(source, str | Path):
        return False
    if is_shards(source):
        return True
    suffix = Path(source).suffix.lower()
    if suffix == ".parquet" and Path(source).is_file():
        return any(name in VECTORS for name in _parquet(Path(source)).schema_arrow.names)
    return suffix in (".npz", ".npy")


def files(place: Path) -> list[Path]:
    """The files of vectors that a place stands for: itself, or all shards of a folder."""
    return Shards.open(place).files() if is_shards(place) else [place]


def unreadable(place: Path) -> list[tuple[str, str]]:
    """The images of which there is no vector because they could not be read, and why."""
    return [(name, reason) for _, name, reason in Shards.open(place).unreadable()] if is_shards(place) else []


def read(file: Path) -> tuple[list[Item], Vectors, str | None]:
    """The items and vectors in a file, and the fingerprint of the model that made them, if it says so."""
    check(file.is_file(), f"there is no file '{file}': check its name")
    columns = _columns(file)
    name = next((name for name in VECTORS if name in columns), None)
    check(
        name is not None,
        f"'{file.name}' has no array embeddings or vectors: it holds {', '.join(columns) or 'nothing'}",
    )
    given = np.asarray(columns.pop(str(name)))
    check(given.dtype.kind in "biuf", f"the vectors in '{file.name}' are {given.dtype}, not numbers: save float32")
    vectors = given.astype(np.float32, copy=False)
    check(
        vectors.ndim == 2,
        f"the vectors in '{file.name}' must form a matrix n × d, not an array of shape {vectors.shape}",
    )
    fingerprint, root = columns.pop("fingerprint", None), columns.get("root")
    place = printable(str(file.resolve()) if root is None or np.ndim(root) else str(root))
    named = {SINGULAR.get(column, column): values for column, values in columns.items() if np.ndim(values) == 1}
    for column, values in named.items():
        check(len(values) == len(vectors), f"'{file.name}' has {len(values)} {column} for {len(vectors)} vectors")
    items = [
        _item(f"{file.stem}/{row}", place, {column: values[row] for column, values in named.items()})
        for row in range(len(vectors))
    ]
    return items, vectors, None if fingerprint is None else str(fingerprint)


def _item(name: str, root: str, cells: dict[str, Any]) -> Item:
    path, label = cells.get("path"), cells.get("label")
    id_ = cells.get("id", path if path is not None else name)
    stamp = None
    if all(column in cells for column in STAMP):
        size, modified, digest = (cells.pop(column) for column in STAMP)
        whole = isinstance(size, int | np.integer) and isinstance(modified, int | np.integer)
        check(
            whole,
            f"'file_size' and 'file_time' of the item '{id_}' must be whole numbers, not {size!r} and {modified!r}",
        )
        stamp = Stamp(int(size), int(modified), str(digest))
    own = {
        column: _plain(value)
        for column, value in cells.items()
        if column not in RESERVED and not (column in OPTIONAL and value == "")
    }
    return Item(
        printable(_text(id_)),
        None if path is None else _text(path),
        None if _plain(label) is None else printable(_text(label)),
        own,
        root,
        stamp,
    )


def _plain(value: Any) -> Value:
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or value != value:
        return None
    return value if isinstance(value, bool | int | float) else printable(_text(value))


def _text(value: Any) -> str:
    return os.fsdecode(value) if isinstance(value, bytes) else str(value)


def _columns(file: Path) -> dict[str, Any]:
    try:
        if file.suffix.lower() == ".parquet":
            table = _parquet(file).read()
            return {name: _as_array(name, table.column(name)) for name in table.column_names}
        return read_arrays(file) if zipfile.is_zipfile(file) else {"vectors": read_array(file)}
    except (OSError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise UserError(
            f"'{file}' cannot be read as vectors ({error}): write it with numpy.savez or numpy.save"
        ) from None


def _as_array(name: str, column: Any) -> Any:
    return np.array(column.to_pylist(), np.float32) if name in VECTORS else column.to_pylist()


def _parquet(file: Path) -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise UserError(
            f"'{file.name}' is a Parquet file, and pyarrow is not installed: {install('parquet')}"
        ) from None
    try:
        return parquet.ParquetFile(file)
    except (OSError, ValueError) as error:
        raise UserError(f"'{file}' cannot be read as Parquet: {error}") from None


def load(store: Store, place: Path, progress: Progress | None = None) -> Update:
    """Add what is new or different in `place`; vectors of another model are refused."""
    parts, result = files(place), Update(unreadable=unreadable(place))
    for number, file in enumerate(parts):
        items, raw, fingerprint = read(file)
        identity = store.identity
        content = placed(raw, identity.geometry)
        check(
            fingerprint in (None, identity.fingerprint),
            f"the vectors in '{place.name}' come from another model than this index's",
        )
        for start in range(0, len(items), BULK):
            _put(store, items[start : start + BULK], content[start : start + BULK], identity.generation, result)
            if progress is not None and len(parts) == 1:
                progress(min(start + BULK, len(items)), len(items))
        if progress is not None and len(parts) > 1:
            progress(number + 1, len(parts))
    return result


def _put(store: Store, items: Sequence[Item], content: Vectors, generation: int, result: Update) -> None:
    """Write what is new or different; a file that is as it was has the vector that it had."""
    known = {item.id: item for item in store.items([item.id for item in items])}
    rows = [row for row, item in enumerate(items) if item.stamp is None or item != known.get(item.id)]
    if rows:
        store.put([items[row] for row in rows], content[rows], generation=generation)
    new = sum(items[row].id not in known for row in rows)
    result.added, result.changed = result.added + new, result.changed + len(rows) - new
    result.unchanged += len(items) - len(rows)
