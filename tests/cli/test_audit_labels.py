"""`lookalike audit --run RUN`: a wrong label is named with its file, what it should be, and why."""

import csv
import json
import shutil

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from lookalike import data
from lookalike.cli import app
from lookalike.errors import UserError


@pytest.fixture
def run(tmp_path):
    """Three tight classes of 8; the image in row 9, of the second class, is labelled as the first."""
    labels = np.array([f"class {row // 8}" for row in range(24)])
    vectors = np.eye(5)[np.arange(24) // 8] + 0.05 * np.random.default_rng(0).standard_normal((24, 5))
    labels[9] = "class 0"
    paths = np.array([f"photos/{row}.jpg" for row in range(24)])
    np.savez(tmp_path / "test.npz", embeddings=vectors.astype("f"), labels=labels, paths=paths)
    return tmp_path


def test_the_table_names_file_label_suggestion_and_evidence(run):
    shown = CliRunner().invoke(app, ["audit", "--run", str(run)])
    assert shown.exit_code == 0, shown.output
    assert "photos/9.jpg [class 0] looks like class 1" in shown.stdout
    assert "1 of 24 labels look suspicious" in shown.stdout
    with (run / "suspicious_labels.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["path"], row["label"], row["suggested label"]) == ("photos/9.jpg", "class 0", "class 1")
    assert row["evidence"].startswith("7 of its 8 nearest images have the suggested label, none has its own; ")


def test_json_has_the_same_rows(run):
    shown = json.loads(CliRunner().invoke(app, ["audit", "--run", str(run), "--json"]).stdout)
    assert shown["file"] == str(run / "suspicious_labels.csv")
    assert [row["path"] for row in shown["labels"]] == ["photos/9.jpg"]


def test_any_data_can_be_checked_with_a_run(lookalike, finished, photos, tmp_path):
    run, _ = finished
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    ended = lookalike("audit", photos, "--run", copy, "--json")
    assert ended.code == 0, ended.error
    findings = {finding["kind"]: finding for finding in json.loads(ended.out)["findings"]}
    with (copy / "suspicious_labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    items = findings.get("suspicious labels", {"items": []})["items"]
    assert [(row["path"], row["suggested label"]) for row in rows] == [(i["path"], i["looks_like"]) for i in items]
    assert "labels look suspicious" in ended.error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give the data to audit, or --run"),
        (["--run", "run", "--out", "audit.json"], "--out needs the data to audit"),
        (["photos", "--run", "run", "--embeddings", "x.npy"], "give --embeddings or --run, not both"),
    ],
)
def test_mistakes_are_one_line(words, message):
    with pytest.raises(UserError, match=message):
        raise CliRunner().invoke(app, ["audit", *words]).exception


def test_rows_without_files_need_the_data(run):
    with np.load(run / "test.npz") as content:
        np.savez(run / "test.npz", embeddings=content["embeddings"], labels=content["labels"])
    with pytest.raises(UserError, match=r"have no file names: run `lookalike audit DATA --run"):
        raise CliRunner().invoke(app, ["audit", "--run", str(run)]).exception


def test_every_label_with_its_chance_as_a_table_that_fit_reads(lookalike, photos, tmp_path):
    mixed = tmp_path / "mixed"
    shutil.copytree(photos, mixed)
    for number in range(2):  # two photos of the first class in the folder of the second
        (mixed / "class 00" / f"{number}.png").rename(mixed / "class 01" / f"wrong {number}.png")
    dataset = data.load(str(mixed))
    files = [str(dataset.images.path(row)) for row in range(len(dataset))]
    pixels = np.stack([np.asarray(Image.open(file), np.float32).ravel() for file in files])
    np.save(tmp_path / "pixels.npy", pixels - pixels.mean(0))
    arguments = ("audit", mixed, "--embeddings", tmp_path / "pixels.npy", "--labels", tmp_path / "labels.csv")
    ended = lookalike(*arguments)
    assert ended.code == 0, ended.error
    assert f"of {len(files)} labels are doubted: {tmp_path / 'labels.csv'}" in ended.out.splitlines()[-1]
    assert "of the labels are wrong, as estimated from" in ended.out.splitlines()[-1]
    figures = json.loads(lookalike(*arguments, "--json").out)["wrong_labels"]
    assert 0 <= figures["low"] <= 2 / len(files) <= figures["high"] < 0.5
    with (tmp_path / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(files)
    assert {row["path"].rsplit("/", 1)[1] for row in rows[:2]} == {"wrong 0.png", "wrong 1.png"}
    assert {row["suggested label"] for row in rows[:2]} == {"class 00"}
    doubts = [row for row in rows if row["verdict"] == "maybe"]
    assert rows[: len(doubts)] == doubts
    assert (figures["doubted"], figures["labels"]) == (len(doubts), len(rows))
    assert len(data.load(str(tmp_path / "labels.csv"))) == len(rows) - len(doubts)
