"""Finished runs as fit leaves them, without training: vectors in clusters, measured for real."""

import json
from pathlib import Path

import numpy as np

from lookalike.evaluation import evaluate

CLASSES, EACH, DIM = 8, 6, 5


def finished(folder: Path, noise: float, seed: int = 0, loss: str = "triplet", dim: int = DIM, **more) -> Path:
    """A run whose embeddings scatter by `noise` around their class."""
    folder.mkdir(parents=True)
    draw = np.random.default_rng(seed + more.get("draw", 0))
    labels = [f"<b>{number}</b>" for number in range(more.get("classes", CLASSES)) for _ in range(EACH)]
    centres = np.random.default_rng(99).standard_normal((len(labels) // EACH, dim))
    vectors = (np.repeat(centres, EACH, 0) + noise * draw.standard_normal((len(labels), dim))).astype("f4")
    metrics = ["recall@1", "map@r"]
    rows = [row("this model", "model", evaluate(vectors, labels, metrics=metrics))]
    if more.get("train"):
        rows.append(row("train images", "train", evaluate(vectors, labels, metrics=["rho", "intra", "inter"])))
    (folder / "measured.json").write_text(json.dumps(rows))
    if more.get("vectors", True):
        np.savez(folder / "test.npz", embeddings=vectors, labels=np.array(labels))
    fold = f"\nfold = {more['fold']}" if "fold" in more else ""
    batch = more.get("batch", 32)
    (folder / "recipe.toml").write_text(
        f'seed = {seed}\n[loss]\nname = "{loss}"\n[sampler]\nbatch_size = {batch}\n[model]\nbackbone = "conv4"\n'
        f'dim = {dim}\n[protocol]\nname = "class_disjoint"{fold}\n'
    )
    content = {"training": {"steps": 20, "seconds": 60 * (1 + noise)}, "model": {"geometry": "sphere"}}
    (folder / "result.json").write_text(json.dumps(content))
    events = [{"event": "step", "step": step, "loss": 1 / step} for step in (1, 10, 20)]
    events += [{"event": "validation", "step": step, "recall@1": step / 40, "map@r": step / 50} for step in (10, 20)]
    for instance in range(more.get("instances", 0)):
        events.append(
            {
                "event": "note",
                "step": 10 * instance,
                "text": "…",
                "instance": instance,
                "covering_radius": 0.5 / (instance + 1),
                "between_classes": 1.0,
            }
        )
    (folder / "log.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    return folder


def row(name, role, result):
    return {"name": name, "role": role, "optimistic": False, "result": json.loads(result.to_json())}


def study(folder: Path) -> Path:
    """Two rows with two seeds each; the baseline is the second."""
    for place, loss in enumerate(("triplet", "margin")):
        for seed in (0, 1):
            cell = folder / "cells" / f"loss-{loss}-seed-{seed}-{place}{seed}00000000"
            finished(cell, 0.3 + 0.9 * place, seed, loss, vectors=False, train=True)
    rows = [{"name": "Loss: margin"}, {"name": "Loss: triplet"}]
    content = {"title": "Losses", "baseline": "Loss: margin", "rows": rows}
    (folder / "study.json").write_text(json.dumps(content))
    return folder
