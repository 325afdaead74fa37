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
        ({"vectors": VECTORS[0]}, "must form a matrix n × d, not an array of shape"),
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


def test_what_numpy_holds_beside_numbers_and_texts(tmp_path):
    """Nothing of it is lost without a word."""
    columns = {
        "labels": np.array([b"hen", b"caf\xe9"]),
        "day": np.array(["2026-01-02", "NaT"], "datetime64[D]"),
        "phase": np.array([1j, 2]),
    }
    np.savez(tmp_path / "v.npz", vectors=VECTORS, **columns)
    first, second = read(tmp_path / "v.npz")[0]
    assert (first.label, first.columns) == ("hen", {"day": "2026-01-02", "phase": "1j"})
    assert (second.label, second.columns) == ("caf\\xe9", {"day": None, "phase": "(2+0j)"})
    np.savez(tmp_path / "v.npz", vectors=VECTORS, labels=[1.5, np.nan])
    assert [item.label for item in read(tmp_path / "v.npz")[0]] == ["1.5", None]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"vectors": VECTORS + 1j}, r"are complex\d+, not numbers"),
        ({"vectors": VECTORS.astype(str)}, "not numbers: save float32"),
        ({"vectors": VECTORS.astype("datetime64[s]")}, "not numbers: save float32"),
        (
            {"vectors": VECTORS, **dict(zip(STAMP, ([1.5, 2], [3, 4], ["d", "e"]), strict=True))},
            "must be whole numbers",
        ),
        (
            {"vectors": VECTORS, **dict(zip(STAMP, (["x", "y"], [3, 4], ["d", "e"]), strict=True))},
            "must be whole numbers",
        ),
    ],
)
def test_arrays_that_are_no_vectors_or_stamps(tmp_path, arrays, message):
    np.savez(tmp_path / "v.npz", **arrays)
    with pytest.raises(UserError, match=message):
        read(tmp_path / "v.npz")


def test_a_parquet_file_of_ragged_vectors(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(arrow.table({"vectors": [[1.0], [1.0, 2.0]]}), tmp_path / "v.parquet")
    with pytest.raises(UserError, match="cannot be read as vectors"):
        read(tmp_path / "v.parquet")


def test_an_update_in_words():
    assert str(Update(1234, 5, 6)) == "1,234 added, 5 changed, 6 unchanged"
    assert str(Update(0, 0, 1, 2, [("a", "why")])) == "0 added, 0 changed, 1 unchanged, 2 removed, 1 unreadable"
