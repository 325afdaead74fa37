"""A folder with every kind of broken file: each is listed, none stops the audit, the good ones can be used."""

import json

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance
from typer.testing import CliRunner

from lookalike import data
from lookalike.cli import app
from lookalike.data.audit.audit import class_size_histogram
from lookalike.data.audit.duplicates import exact_groups, near_groups
from lookalike.data.audit.scan import Scan, perceptual_hashes, scan, shapes
from lookalike.data.audit.suspicious_labels import suspicious_labels
from tests.fixtures.png import png


@pytest.fixture
def broken(pictures):
    """Two good classes and one file of every bad kind."""
    for kind in ("hen", "owl"):
        for place in range(3):
            pictures.save(f"{kind}/{place}.jpg", pictures.pixels(64, 80), quality=92)
    root = pictures.root
    (root / "owl" / "empty.jpg").write_bytes(b"")
    (root / "owl" / "text.jpg").write_text("hello")
    (root / "owl" / "cut.jpg").write_bytes((root / "owl" / "1.jpg").read_bytes()[:-300])
    (root / "owl" / "bomb.png").write_bytes(png(20000, 20000))
    (root / "owl" / "gone.jpg").symlink_to(root / "nowhere.jpg")
    pictures.save("owl/a gif.png", format="GIF")
    pictures.save("owl/named.dat", format="PNG")
    pictures.save("emu/lonely.jpg")
    pictures.save("lost.jpg")
    return pictures


def kinds(result):
    return {finding.kind: finding.count for finding in result.findings}


def test_every_bad_file_is_listed(broken):
    calls = []
    result = data.audit(data.folder(broken.root), progress=lambda done, total: calls.append((done, total)))
    assert kinds(result) == {
        "empty": 1,
        "not an image": 1,
        "truncated": 1,
        "bomb": 1,
        "missing": 1,
        "wrong extension": 1,
        "unnamed image": 1,
        "no class": 1,
        "classes with one image": 1,
    }
    assert result.usable
    assert (result.images, result.readable) == (13, 8)
    assert result.class_sizes == {"1": 1, "2–3": 1, "4–7": 1}
    assert calls[-1] == (13, 13)
    json.dumps(result.as_json())


def test_training_continues_with_the_rest(broken):
    dataset = data.folder(broken.root)
    good = data.readable(dataset)
    assert len(good) == 8
    assert {problem.kind for problem in good.problems} == {
        "no class",
        "empty",
        "not an image",
        "truncated",
        "bomb",
        "missing",
    }
    view = data.AugmentedImages(good, data.preset("roth").resized(16, 20).train)
    [sample] = data.loader(view, data.Tickets([list(range(8))]))
    assert sample.image.shape == (8, 3, 16, 16)
    assert not view.problems()


def test_copies_are_detected_by_content_and_near_copies_by_sight(pictures):
    pixels = [pictures.pixels(150, 200) for _ in range(6)]
    first = pictures.save("train/hen/0.jpg", pixels[0], quality=95)
    pictures.save("train/hen/1.jpg", pixels[1], quality=95)
    (pictures.root / "train/hen/copy.jpg").write_bytes(first.read_bytes())
    image = Image.fromarray(pixels[1])
    pictures.save("train/emu/small.png", np.asarray(image.resize((100, 75))))
    pictures.save("test/owl/weak.jpg", np.asarray(ImageEnhance.Brightness(image).enhance(0.85)), quality=40)
    for place in range(2, 6):
        pictures.save(f"test/owl/{place}.jpg", pixels[place])
    dataset = data.folder(pictures.root)
    result = data.audit(dataset)
    assert kinds(result) == {
        "copies within a class": 1,
        "near duplicates across splits": 1,
        "near duplicates across classes": 1,
        "classes with one image": 1,
    }
    leak = next(finding for finding in result.findings if finding.kind == "near duplicates across splits")
    assert {entry["path"] for entry in leak.items[0]} == {"train/hen/1.jpg", "train/emu/small.png", "test/owl/weak.jpg"}
    groups = data.near_duplicate_groups(dataset)
    split = data.class_disjoint(dataset, {"train": 0.5, "test": 0.5}, together=groups)
    assert "near duplicates across splits" not in kinds(data.audit(split))


def test_a_thousand_blank_pages_are_not_near_duplicates():
    """Images without structure have random hashes; only the same bytes make them equal."""
    random = np.random.default_rng(0)
    blank = (250 + random.integers(0, 3, (40, 32, 32))).astype(np.uint8)
    dataset = data.arrays(blank, list(range(20)) * 2)
    scanned = scan(dataset)
    assert (near_groups(scanned) < 0).all()
    assert (exact_groups(scanned) < 0).all()


def test_the_same_hash_alone_does_not_make_the_same_photo():
    random = np.random.default_rng(3)
    vectors = random.normal(size=(3, 256)).astype(np.float32)
    vectors[1] = vectors[0] + 0.5 * vectors[1]  # correlates by about 0.9
    vectors[2] = vectors[0] + 0.1 * vectors[2]  # by more than 0.99
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    digests = random.integers(0, 255, (3, 16), np.uint8)
    assert near_groups(Scan(np.ones(3, bool), digests, np.zeros(3, np.uint64), vectors, ())).tolist() == [0, -1, 0]


def brute_force(scanned):
    """Near duplicates by plain loops and sets."""
    count = len(scanned.hashes)
    group = list(range(count))
    for i in range(count):
        for j in range(i):
            close = bin(int(scanned.hashes[i]) ^ int(scanned.hashes[j])).count("1") <= 10
            if close and float(scanned.shapes[i] @ scanned.shapes[j]) >= 0.97:
                group = [group[i] if value == group[j] else value for value in group]
    return group


def test_groups_agree_with_plain_loops():
    random = np.random.default_rng(2)
    base = random.integers(0, 256, (12, 4, 4), dtype=np.uint8)
    thumbs = np.stack([np.asarray(Image.fromarray(base[i % 12]).resize((32, 32), 3)) for i in range(60)])
    noise = random.normal(0, random.integers(0, 30, (60, 1, 1)), thumbs.shape)
    thumbs = (thumbs + noise).clip(0, 255).astype(np.uint8)
    scanned = Scan(
        np.ones(60, bool), random.integers(0, 255, (60, 16), np.uint8), perceptual_hashes(thumbs), shapes(thumbs), ()
    )
    ours, plain = near_groups(scanned).tolist(), brute_force(scanned)
    assert len(set(ours)) > 3
    for i in range(60):
        for j in range(i):
            assert (ours[i] == ours[j] and ours[i] >= 0) == (plain[i] == plain[j])


def test_suspicious_labels_need_a_model():
    generator = torch.Generator().manual_seed(0)
    centres = torch.eye(8)[:4]
    labels = torch.arange(4).repeat_interleave(15)
    points = centres[labels] + 0.1 * torch.randn(60, 8, generator=generator)
    wrong = labels.clone()
    wrong[[3, 40]] = torch.tensor([2, 0])
    assert sorted(doubt.row for doubt in suspicious_labels(points, wrong)) == [3, 40]
    assert {doubt.row: doubt.other for doubt in suspicious_labels(points, wrong)} == {3: 0, 40: 2}
    assert not suspicious_labels(points, labels)
    (doubt,) = suspicious_labels(points, wrong, rows=torch.tensor([0, 3, 8]))
    scores = torch.nn.functional.normalize(points[3:4]) @ torch.nn.functional.normalize(points).T
    nearest = max((row for row in range(60) if row != 3), key=lambda row: scores[0, row])
    assert (doubt.row, doubt.votes, doubt.neighbours, doubt.nearest) == (3, 10, 10, nearest)
    assert doubt.similarity == pytest.approx(float(scores[0, nearest]))
    dataset = data.arrays(torch.zeros(60, 4, 4, dtype=torch.uint8), wrong)
    assert kinds(data.audit(dataset, embeddings=points))["suspicious labels"] == 2


def test_nothing_to_learn_from_is_not_usable(pictures):
    pictures.save("hen/a.jpg")
    pictures.save("owl/a.jpg")
    result = data.audit(data.folder(pictures.root))
    assert not result.usable
    assert "0 of 2 classes" in result.verdict
    assert class_size_histogram(data.folder(pictures.root)) == {"1": 2}


def test_the_command_prints_a_table_and_writes_json(broken, tmp_path):
    run = CliRunner().invoke(app, ["audit", str(broken.root), "--out", str(tmp_path / "audit.json")])
    assert run.exit_code == 0, run.output
    assert "owl/cut.jpg" in run.stdout
    assert "usable: 8 of 13 images can be read, 2 classes have pairs" in run.stdout
    written = json.loads((tmp_path / "audit.json").read_text())
    assert written["readable"] == 8
    printed = CliRunner().invoke(app, ["audit", str(broken.root), "--json"])
    assert json.loads(printed.stdout) == written


def test_the_exit_code_of_the_command_says_that_data_are_unusable(pictures, tmp_path):
    pictures.save("hen/a.jpg")
    assert CliRunner().invoke(app, ["audit", str(pictures.root)]).exit_code == 1
    np.save(tmp_path / "vectors.npy", np.ones((1, 3), np.float32))
    run = CliRunner().invoke(app, ["audit", str(pictures.root), "--embeddings", str(tmp_path / "vectors.npy")])
    assert run.exit_code == 1
    missing = CliRunner().invoke(app, ["audit", str(tmp_path / "none")])
    assert "there is no folder or table" in str(missing.exception)


def test_the_command_audits_a_table(pictures):
    pictures.save("a.jpg")
    file = pictures.write("t.csv", ["path,label", "a.jpg,x", "b.jpg,x"])
    run = CliRunner().invoke(app, ["audit", str(file)])
    assert run.exit_code == 1
    assert "b.jpg: there is no such file" in run.stdout


def test_the_catalogue_lists_the_data():
    run = CliRunner().invoke(app, ["list", "data", "--json"])
    rows = {row["name"]: row for row in json.loads(run.stdout)}
    assert set(rows) == set(data.names())
    assert "difficulty" in rows["glyphs"]["settings"]
    assert all(row["does"].endswith(".") for row in rows.values())


@pytest.mark.slow
def test_planted_pairs_are_detected_among_many():
    """benchmarks.images measures the time for 100,000."""
    random = np.random.default_rng(0)
    hashes = random.integers(0, 2**63, 30_000, dtype=np.uint64)
    vectors = random.normal(size=(30_000, 256)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    hashes[29_000:] = hashes[:1000] ^ np.uint64(0b10101)
    vectors[29_000:] = vectors[:1000]
    digests = random.integers(0, 256, (30_000, 16)).astype(np.uint8)
    groups = near_groups(Scan(np.ones(30_000, bool), digests, hashes, vectors, ()))
    assert int((groups >= 0).sum()) == 2000
    assert torch.equal(groups[:1000], groups[29_000:])
