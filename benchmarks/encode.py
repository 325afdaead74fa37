"""ONNX Runtime beside torch on one core: images per second of EfficientNet-lite0, and the same embeddings.

    python -m benchmarks.encode [--crop 128 224] [--images 96] [--rounds 5] [--keep-memory] [--json FILE]

Both encode the same images (already decoded, of the size of the crop) by `Model.encode`, in turns; the best round
counts, in seconds of the clock and of the processor. Processor seconds suffer less from other work on the machine.
With `--keep-memory` the allocator gives nothing back to the system, as in the command line: torch gains most by that.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lookalike.cli.allocator import keep_memory
from lookalike.models import Architecture, Model, available

BACKENDS = ("torch", "onnx")


def photos(count: int, side: int) -> np.ndarray:
    """Smooth colours with some noise: closer to photographs than noise alone."""
    draw = np.random.default_rng(0)
    coarse = torch.from_numpy(draw.random((count, 3, 6, 6), dtype=np.float32))
    smooth = torch.nn.functional.interpolate(coarse, (side, side), mode="bicubic").clamp(0, 1)
    noisy = smooth + 0.05 * torch.from_numpy(draw.standard_normal(smooth.shape, dtype=np.float32))
    return np.asarray((255 * noisy.clamp(0, 1)).to(torch.uint8).permute(0, 2, 3, 1))


def measure(crop: int, count: int, rounds: int) -> dict[str, Any]:
    """Seconds of both backends, and how far apart their embeddings are."""
    weights = "pretrained" if available("efficientnet_lite0") else None
    model = Model.create(Architecture("efficientnet_lite0", dim=None), weights)
    model.preprocessing = model.preprocessing.sized(crop, crop)
    images = photos(count, crop)
    start = time.perf_counter()
    backends = {name: model.backend(name) for name in BACKENDS}  # type: ignore[arg-type]
    row: dict[str, Any] = {"crop": crop, "images": count, "export_s": time.perf_counter() - start}
    embeddings = {name: model.encode(images[:16], backend=backend) for name, backend in backends.items()}
    best = {name: {"clock": float("inf"), "cpu": float("inf")} for name in BACKENDS}
    for _ in range(rounds):
        for name, backend in backends.items():
            start, used = time.perf_counter(), time.process_time()
            embeddings[name] = model.encode(images, backend=backend)
            best[name]["clock"] = min(best[name]["clock"], time.perf_counter() - start)
            best[name]["cpu"] = min(best[name]["cpu"], time.process_time() - used)
    for name in BACKENDS:
        row |= {f"{name}_{clock}": count / seconds for clock, seconds in best[name].items()}
    row |= {f"ratio_{clock}": row[f"onnx_{clock}"] / row[f"torch_{clock}"] for clock in ("clock", "cpu")}
    row["difference"] = float((embeddings["torch"] - embeddings["onnx"]).abs().max())
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crop", type=int, nargs="+", default=[128, 224])
    parser.add_argument("--images", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep-memory", action="store_true", help="set the allocator as the command line does")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.keep_memory:
        keep_memory()
    torch.set_num_threads(1)
    rows = []
    print("images per second of one core, by the clock (and per second of processor time)")
    for crop in options.crop:
        row = measure(crop, options.images, options.rounds)
        rows.append(row)
        print(
            f"{crop} px: torch {row['torch_clock']:.1f} ({row['torch_cpu']:.1f}), onnx {row['onnx_clock']:.1f} "
            f"({row['onnx_cpu']:.1f}), {row['ratio_clock']:.2f} × ({row['ratio_cpu']:.2f} ×); "
            f"largest difference {row['difference']:.1e}; exported, compared or found in {row['export_s']:.1f} s",
            flush=True,
        )
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
