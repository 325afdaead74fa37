"""Vectors made elsewhere: NumPy and Parquet files with their ids, labels and columns."""

import numpy as np
import pytest

from lookalike.errors import UserError
from lookalike.search.adding.update import Update
from lookalike.search.adding.vectors import STAMP, holds_vectors, read
from lookalike.search.items import Item, Stamp

VECTORS = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_arrays_with_their_columns(tmp_path):
    file = tmp_path / "v.npz"
    columns = {"labels": ["x", "y"], "paths": ["/a", "/b"], "price": [1.5, np.nan], "fingerprint": "f1"}
    stamps = dict(zip(STAMP, ([1, 2], [3, 4], ["d", "e"]), strict=True))
    np.savez(file, embeddings=VECTORS, **columns, **stamps)
    items, vectors, fingerprint = read(file)
    assert fingerprint == "f1"
    assert np.array_equal(vectors, VECTORS)
    root = str(file)
    assert items == [
        Item("/a", "/a", "x", {"price": 1.5}, root, Stamp(1, 3, "d")),
        Item("/b", "/b", "y", {"price": None}, root, Stamp(2, 4, "e")),
    ]


def test_vectors_alone_are_named_after_their_file(tmp_path):
    np.save(tmp_path / "v.npy", VECTORS)
    assert [item.id for item in read(tmp_path / "v.npy")[0]] == ["v/0", "v/1"]


def test_a_parquet_file(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    content = {"vectors": VECTORS.tolist(), "id": ["a", "b"], "label": ["x", None], "price": [1, 2]}
    parquet.write_table(arrow.table(content), tmp_path / "v.parquet")
    parquet.write_table(arrow.table({"path": ["a.png"]}), tmp_path / "images.parquet")
    assert holds_vectors(tmp_path / "v.parquet")
    assert not holds_vectors(tmp_path / "images.parquet")
    items, vectors, fingerprint = read(tmp_path / "v.parquet")
    assert np.array_equal(vectors, VECTORS)
    assert [(item.id, item.label, item.columns) for item in items] == [
        ("a", "x", {"price": 1}),
        ("b", None, {"price": 2}),
    ]
    assert fingerprint is None
    (tmp_path / "v.parquet").write_bytes(b"no table")
    with pytest.raises(UserError, match="cannot be read as Parquet"):
        read(tmp_path / "v.parquet")


def test_files_that_are_no_vectors(tmp_path):
    for arrays, message in (
        ({"labels": ["x"]}, "has no array embeddings or vectors: it holds labels"),
        ({"vectors": VECTORS[0]}, "form a matrix n × d, not an array of shape"),
        ({"vectors": VECTORS, "labels": ["x"]}, "has 1 label for 2 vectors"),
    ):
        np.savez(tmp_path / "v.npz", **arrays)
        with pytest.raises(UserError, match=message):
            read(tmp_path / "v.npz")
    (tmp_path / "v.npy").write_bytes(b"no array")
    for name, message in (("v.npy", "cannot be read as vectors"), ("none.npy", "there is no file")):
        with pytest.raises(UserError, match=message):
            read(tmp_path / name)
    assert not holds_vectors(3)
    assert not holds_vectors(tmp_path)


def test_an_update_in_words():
    assert str(Update(1234, 5, 6)) == "1,234 added, 5 changed, 6 unchanged"
    assert str(Update(0, 0, 1, 2, [("a", "why")])) == "0 added, 0 changed, 1 unchanged, 2 removed, 1 unreadable"
