"""Small ONNX files beside float32: recall@1 and map@r on unseen classes, and the processor's time for an image.

    python -m benchmarks.small_exports cub200=PATH/CUB_200_2011 PATH/cars196 [--crop 128] [--backbone NAME]

The frozen, pretrained backbone on the second half of the classes; int8 is calibrated on 256 photos of the first half.
"against float32" is the paired difference of recall@1 with its 95% interval over classes.
ONNX Runtime with one thread runs all files in turns, 4 images at a time; the median turn counts, in processor seconds.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from lookalike import data
from lookalike.features import export_small
from lookalike.models import Architecture, Model, export_onnx
from lookalike.models.onnx_graph import AT_ONCE, Session

ROUNDS = 50


def measure(source: str, backbone: str, crop: int, place: Path) -> list[dict[str, Any]]:
    dataset = data.readable(data.load(source))
    names = sorted(dataset.label_names)
    model = Model.create(Architecture(backbone, dim=None), weights="pretrained")
    model.preprocessing, model.classes = model.preprocessing.sized(crop), names[: len(names) // 2]
    files = {name: place / f"{name}.onnx" for name in ("float32", "float16", "int8")}
    export_onnx(model, files["float32"])
    proofs = {name: export_small(model, dataset, files[name], name, most_lost=1.0) for name in ("float16", "int8")}
    seconds = _seconds(files, model.preprocessing.channels, crop)
    rows = [_row("float32", proofs["int8"].model["recall@1"], proofs["int8"].model["map@r"])]
    for name, proof in proofs.items():
        gain, _ = proof.gains
        rows.append(_row(name, proof.file["recall@1"], proof.file["map@r"], [gain.difference, gain.low, gain.high]))
    for row in rows:
        name = row["precision"]
        row |= {"ms": 1000 * seconds[name], "faster": seconds["float32"] / seconds[name]}
        row |= {"data": dataset.name, "photos": proofs["int8"].photos, "mb": files[name].stat().st_size / 1e6}
    return rows


def _row(precision: str, recall: float, map_r: float, gain: list[float] | None = None) -> dict[str, Any]:
    return {"precision": precision, "recall@1": recall, "map@r": map_r, "against float32": gain}


def _seconds(files: dict[str, Path], channels: int, crop: int) -> dict[str, float]:
    """Processor seconds for an image, by file."""
    pixels = torch.rand(AT_ONCE, channels, crop, crop, generator=torch.Generator().manual_seed(0)) * 255
    sessions = {name: Session(path) for name, path in files.items()}
    turns: dict[str, list[float]] = {name: [] for name in files}
    for _ in range(ROUNDS):
        for name, session in sessions.items():
            start = time.process_time()
            session(pixels)
            turns[name].append((time.process_time() - start) / AT_ONCE)
    return {name: statistics.median(times) for name, times in turns.items()}


def _line(row: dict[str, Any]) -> str:
    gain = row["against float32"]
    against = "" if gain is None else "{:+.4f} [{:+.4f}, {:+.4f}]".format(*gain)
    return (
        f"{row['data']:<10}{row['photos']:>7,} {row['precision']:<11}{row['recall@1']:>8.4f}{row['map@r']:>8.4f}"
        f"{against:>27}  {row['ms']:.2f} ({row['faster']:.2f} x), {row['mb']:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", metavar="DATA")
    parser.add_argument("--backbone", default="efficientnet_lite0")
    parser.add_argument("--crop", type=int, default=128)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    print(f"{'data':<10}{'photos':>7} {'precision':<11}{'recall@1':>8}{'map@r':>8}{'against float32':>27}  ms, MB")
    for source in options.sources:
        with tempfile.TemporaryDirectory() as place:
            for row in measure(source, options.backbone, options.crop, Path(place)):
                rows.append(row)
                print(_line(row), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
