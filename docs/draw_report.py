"""A run folder as training leaves it, made in a few seconds: glyphs embedded by a small network trained for a moment.

`python -m tests.report.glyph_run FOLDER [STEPS]` writes one and its report, for people who want to look at it.
"""

import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from examples.demo import embed, pixels, train
from lookalike import __version__, data, evaluate, losses, report
from lookalike.evaluation import compare
from lookalike.models import Conv4, Embedder

DIM = 32
METRICS = "recall@1,2,4,8,16,32 map@r r_precision mrr"


def log(folder: Path, steps: int) -> None:
    """A log such as training writes; its curves are made up, everything else of the run is real."""
    draw = np.random.default_rng(0)
    events = [{"event": "start", "time": "2026-11-16T09:00:00"}]
    for step in range(1, steps + 1):
        loss = 0.3 + 1.2 * np.exp(-4 * step / steps) + 0.05 * draw.standard_normal()
        rate = 1e-3 * min(1, 10 * step / steps) * (1 + np.cos(np.pi * step / steps)) / 2
        speed = 900 + 40 * draw.standard_normal()
        row = {"event": "step", "step": step, "epoch": 1 + step // 50, "loss": loss, "lr": rate}
        events.append(row | {"images_per_second": speed, "seconds": step * 0.1})
        if step % max(1, steps // 12) == 0:
            found = {"recall@1": 0.8 - 0.3 * np.exp(-3 * step / steps), "map@r": 0.55 - 0.3 * np.exp(-3 * step / steps)}
            events.append({"event": "validation", "step": step, "seconds": step * 0.1} | found)
    advice = "batches seldom hold a hard pair: try a larger batch or another miner"
    events.append({"event": "health", "step": steps // 2, "kind": "few active pairs", "advice": advice})
    best = max(1, steps * 5 // 6)
    events.append({"event": "end", "step": steps, "seconds": steps * 0.1, "why": "all steps", "best_step": best})
    (folder / "log.jsonl").write_text("\n".join(json.dumps(event) for event in events) + "\n")


def row(name: str, result: object) -> dict:
    intervals = {metric: list(result.interval(metric)) for metric in ("recall@1", "map@r")}
    role = "model" if name == "this model" else "baseline"
    return {"name": name, "role": role, "metrics": dict(result), "intervals": intervals}


def write_result(folder: Path, results: dict, unseen: data.Dataset, seen: data.Dataset, steps: int) -> None:
    gaps = [
        {"against": name, "metric": gap.metric, "mean": gap.difference, "interval": [gap.low, gap.high]}
        for name in ("raw pixels", "before training")
        for gap in compare(
            {name: results[name], "this model": results["this model"]}, ["recall@1", "map@r"]
        ).differences
        if gap.name == "this model"
    ]
    content = {
        "title": "Glyphs: characters in unseen fonts and scripts",
        "data": {
            "name": "glyphs", "summary": unseen.summary(), "train_classes": seen.classes, "train_images": len(seen),
            "test_classes": unseen.classes, "test_images": len(unseen), "source": "glyphs",
        },
        "model": {"backbone": "conv4", "dim": DIM, "parameters": 113088, "geometry": "sphere"},
        "results": [row(name, found) for name, found in results.items()],
        "differences": gaps,
        "training": {"steps": steps, "best_step": steps * 5 // 6, "seconds": 61.5, "stopped": "all steps", "seed": 0},
        "versions": {"lookalike": __version__, "python": platform.python_version(), "torch": str(torch.__version__)},
        "command": f"lookalike fit glyphs --out runs/glyphs --steps {steps} --seed 0",
    }  # fmt: skip
    (folder / "result.json").write_text(json.dumps(content))
    settings = f'seed = 0\n\n[model]\nbackbone = "conv4"\ndim = {DIM}\n\n[loss]\nname = "multi_similarity"\n'
    (folder / "recipe.toml").write_text(settings)


def audited(folder: Path) -> None:
    copies = [[{"path": "owl/1.jpg", "label": "owl"}, {"path": "hen/7.jpg", "label": "hen"}]]
    finding = {"kind": "copies across classes", "count": 1, "meaning": "one photo with two labels", "items": copies}
    content = {"name": "glyphs", "verdict": "usable: all images can be read", "findings": [finding]}
    (folder / "audit.json").write_text(json.dumps(content))


def picture_of(images: Tensor) -> Callable[[int], np.ndarray]:
    grey = ((images + 1) * 127.5).round().to(torch.uint8)
    return lambda number: grey[number].expand(3, -1, -1).permute(1, 2, 0).numpy()


def make(folder: Path, classes: int = 40, steps: int = 0) -> Callable[[int], np.ndarray]:
    """Fill `folder` and give the function that shows a test row."""
    torch.manual_seed(0)
    glyphs = data.build("glyphs")
    seen, unseen = (glyphs.where(split=split).dense() for split in ("train", "test"))
    unseen = unseen.subset(unseen.labels < classes).dense()
    images = pixels(unseen)
    network = Embedder(Conv4(channels=1), dim=DIM)
    results = {"raw pixels": images.flatten(1), "before training": embed(network, images)}
    if steps:
        loss = losses.build("multi_similarity")
        train(network, loss, pixels(seen), seen.labels, steps, 0)
    results = {"this model": embed(network, images)} | results
    names = [unseen.label_names[label] for label in unseen.labels.tolist()]
    scripts = [unseen.category_names[place] for place in unseen.categories.tolist()]
    vectors = torch.nn.functional.normalize(results["this model"]).numpy()
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "test.npz", embeddings=vectors, labels=names, categories=scripts)
    measured = {name: evaluate(found, names, metrics=METRICS) for name, found in results.items()}
    write_result(folder, measured, unseen, seen, steps or 60)
    log(folder, steps or 60)
    audited(folder)
    return picture_of(images)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    shown = make(place, classes=10**6, steps=int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print(report.write(place, shown))
