"""`lookalike embed MODEL DATA` against Model.encode."""

import shutil
from pathlib import Path

import numpy as np

from lookalike import data
from lookalike.features import embed
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


def test_both_backends_agree(lookalike, finished, photos, tmp_path):
    run, _ = finished
    vectors = {}
    for backend in ("torch", "auto"):
        ended = lookalike("embed", run / "model", photos, "--out", tmp_path / "all.npz", "--backend", backend)
        assert ended.code == 0, ended.error
        vectors[backend] = np.load(tmp_path / "all.npz")["embeddings"]
    assert np.abs(vectors["torch"] - vectors["auto"]).max() <= 1e-5
    assert np.array_equal(vectors["torch"], embed(Model.load(run / "model"), data.load(photos)).numpy())
    lookalike("embed", run / "model", photos, "--backend", "onx").refused("did you mean 'onnx'")


def test_paths_are_absolute_and_the_model_is_named(lookalike, finished, photos, tmp_path):
    run, _ = finished
    lookalike("embed", run / "model", photos, "--out", tmp_path / "all.npz")
    content = np.load(tmp_path / "all.npz")
    assert all(Path(path).is_absolute() and Path(path).is_file() for path in content["paths"])
    assert str(content["fingerprint"]) == Model.load(run / "model").fingerprint


def test_images_without_labels(lookalike, finished, photos, tmp_path):
    """A flat folder, one file, a pattern: the same vectors, and no labels."""
    run, _ = finished
    files = sorted(photos.rglob("*.png"))[:3]
    flat = tmp_path / "flat"
    flat.mkdir()
    for number, file in enumerate(files):
        shutil.copy(file, flat / f"{number}.png")
    expected = Model.load(run / "model").encode(files).numpy()
    for source, rows in ((flat, 3), (flat / "0.png", 1), (flat / "*.png", 3)):
        ended = lookalike("embed", run / "model", source, "--out", tmp_path / "some.npz")
        assert ended.code == 0, ended.error
        content = np.load(tmp_path / "some.npz")
        assert set(content) == {"embeddings", "paths", "fingerprint"}
        assert content["paths"].tolist() == [str(flat / f"{row}.png") for row in range(rows)]
        assert np.allclose(content["embeddings"], expected[:rows], atol=1e-5)
    lookalike("embed", run / "model", flat / "*.jpg").refused("no image matches")
    lookalike("evaluate", tmp_path / "some.npz").refused("has no array 'labels'")


def test_a_table_whose_paths_are_all_wrong_shows_one(lookalike, finished, tmp_path):
    run, _ = finished
    table = tmp_path / "wrong.csv"
    table.write_text(
        "path,label\n"
        + "".join(f"photos/{name}.png,{name[0]}\n" for name in ("a", "a2", "b", "b2", "c", "c2", "d", "d2"))
    )
    for verb in (("embed", run / "model", table), ("evaluate", run / "model", table)):
        lookalike(*verb).refused(str(tmp_path / "photos/"))
    lookalike("fit", table, "--out", tmp_path / "out").refused(str(tmp_path / "photos/a.png"))
    assert str(tmp_path / "photos/a.png") in lookalike("audit", table).out


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
    lookalike("embed", run, photos).refused(f"did you mean {run / 'model'}?")
    lookalike("embed", run / "model", tmp_path / "nowhere").refused("nowhere")
    lookalike("embed", run / "model", photos, "--split", "test").refused("has no split column")
    lookalike("embed", run / "model", photos, "--device", "abacus").refused("there is no device 'abacus'")
    lookalike("embed", run / "model", photos, "--out", tmp_path / "no" / "folder.npz").refused("cannot write")
    (tmp_path / "empty").mkdir()
    lookalike("embed", run / "model", tmp_path / "empty").refused("empty")
