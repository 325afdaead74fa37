"""`lookalike embed MODEL DATA` against Model.encode."""

import shutil

import numpy as np

from lookalike import data
from lookalike.models import Model


def test_embeddings_are_those_of_encode(lookalike, finished, photos, tmp_path):
    run, _ = finished
    completed = lookalike("embed", run / "model", photos, "--out", tmp_path / "all.npz")
    assert completed.code == 0, completed.error
    content, dataset = np.load(tmp_path / "all.npz"), data.load(photos)
    assert f"{len(dataset):,} × " in completed.out
    paths = [photos / name for name in content["paths"]]
    assert all(path.is_file() for path in paths)
    assert content["labels"].tolist() == [path.parent.name for path in paths]
    expected = Model.load(run / "model").encode(paths)
    assert np.allclose(content["embeddings"], expected.numpy(), atol=1e-5)
    assert np.allclose(np.linalg.norm(content["embeddings"], axis=1), 1, atol=1e-5)


def test_unreadable_files_are_left_out_and_counted(lookalike, finished, photos, tmp_path):
    run, _ = finished
    some = tmp_path / "some"
    shutil.copytree(photos, some)
    first = sorted(some.rglob("*.png"))[0]
    first.write_bytes(b"no image")
    completed = lookalike("embed", run / "model", some, "--out", tmp_path / "some.npz")
    assert "1 unreadable files left out" in completed.out
    assert len(np.load(tmp_path / "some.npz")["labels"]) == len(data.load(photos)) - 1


def test_mistakes(lookalike, finished, photos, tmp_path):
    run, _ = finished
    lookalike("embed", tmp_path / "none", photos).refused("none")
    lookalike("embed", run, photos).refused(str(run))
    lookalike("embed", run / "model", tmp_path / "nowhere").refused("there is no folder or table")
    lookalike("embed", run / "model", photos, "--split", "test").refused("has no split column")
    lookalike("embed", run / "model", photos, "--device", "abacus").refused("there is no device 'abacus'")
    lookalike("embed", run / "model", photos, "--out", tmp_path / "no" / "folder.npz").refused("cannot write")
    (tmp_path / "empty").mkdir()
    lookalike("embed", run / "model", tmp_path / "empty").refused("empty")
