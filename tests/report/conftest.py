"""A run's folder as training leaves it, without training: clusters of vectors, coloured squares, hostile names."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from lookalike import report
from tests.report.page_reader import Reader

CLASSES, EACH, DIM = 24, 8, 12
HOSTILE = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "\"quoted\" & 'so' on", "nul\x00 ] ]>"]
NAMES = [*HOSTILE, *(f"class {number}" for number in range(len(HOSTILE), CLASSES))]
PATHS = [f"birds/{row // EACH}/<i>{row}.jpg" for row in range(CLASSES * EACH)]
STEPS = 120


def vectors(noise: float, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    centres = draw.standard_normal((CLASSES, DIM))
    rows = np.repeat(centres, EACH, 0) + noise * draw.standard_normal((CLASSES * EACH, DIM))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype("float32")


def labels() -> list[str]:
    return [name for name in NAMES for _ in range(EACH)]


def picture(row: int) -> np.ndarray:
    """A colour per class, 20 × 30 pixels."""
    colour = np.random.default_rng(row // EACH).integers(40, 255, 3)
    return np.broadcast_to(colour.astype(np.uint8), (20, 30, 3))


def log_lines() -> list[str]:
    events = [{"event": "start", "time": "2026-11-16T09:00:00"}]
    for step in range(1, STEPS + 1):
        loss = float("nan") if step == 7 else 1 / step
        events.append(
            {"event": "step", "step": step, "epoch": 1, "loss": loss, "lr": 1e-3, "images_per_second": 100.0 + step}
        )
        if step % 20 == 0:
            events.append({"event": "validation", "step": step, "recall@1": 0.5 + step / 400, "map@r": step / 400})
    events.append({"event": "health", "step": 9, "kind": "collapse", "advice": "lower the <b>learning rate</b>"})
    events.append({"event": "end", "step": STEPS, "seconds": 5.0, "why": "all steps", "best_step": 100})
    return [json.dumps(event) for event in events] + ['{"event": "st']  # a line cut off by a crash


RESULT = {
    "title": "Birds </title><script>alert(3)</script>",
    "data": {"name": "birds", "train_classes": 30, "source": "birds/"},
    "model": {"backbone": "conv4", "dim": DIM, "geometry": "sphere"},
    "results": [
        {"name": "raw pixels", "role": "baseline", "metrics": {"recall@1": 0.3, "recall@2": 0.35, "map@r": 0.1}},
        {
            "name": "this model",
            "role": "model",
            "metrics": {"recall@1": 0.9, "map@r": 0.7},
            "intervals": {"recall@1": [0.88, 0.92], "map@r": [0.68, 0.72]},
        },
    ],
    "differences": [{"against": "raw pixels", "metric": "map@r", "mean": 0.6, "interval": [0.55, 0.65]}],
    "training": {"steps": STEPS, "best_step": 100, "seed": 17, "seconds": 200.0, "memory": 1_234_567_890},
    "versions": {"lookalike": "0.1.0"},
    "command": "lookalike fit birds/ --seed 17",
}
TRUNCATED = {"kind": "truncated", "count": 1, "meaning": "left out", "items": [{"path": "<i>.jpg", "detail": "x"}]}
AUDIT = {"name": "birds", "verdict": "usable: 3 of 4 images can be read", "findings": [TRUNCATED]}


def fill(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    kinds = [f"kind {number % 3}" for number in range(CLASSES) for _ in range(EACH)]
    np.savez(folder / "test.npz", embeddings=vectors(0.8), labels=labels(), categories=kinds, paths=PATHS)
    (folder / "log.jsonl").write_text("\n".join(log_lines()) + "\n")
    (folder / "result.json").write_text(json.dumps(RESULT))
    (folder / "audit.json").write_text(json.dumps(AUDIT))
    (folder / "recipe.toml").write_text('seed = 17\nname = "<b>bold</b>"\n')
    return folder


@pytest.fixture(scope="session")
def run(tmp_path_factory) -> Path:
    """A complete run with its report; tests only read it."""
    folder = fill(tmp_path_factory.mktemp("runs") / "complete")
    report.write(folder, picture, png=True)
    return folder


@pytest.fixture(scope="session")
def text(run) -> str:
    return (run / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def reader(text) -> Reader:
    return Reader(text)


@pytest.fixture
def without_tsne(monkeypatch):
    """As if it were not installed."""
    monkeypatch.setitem(sys.modules, "openTSNE", None)


@pytest.fixture
def no_tsne(run, without_tsne):
    """Only the one complete run has its map by t-SNE, which takes most of the time."""
