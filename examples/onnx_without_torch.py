"""Search on a machine without torch: onnxruntime, Pillow and NumPy compare one photo with a folder of others.

lookalike export run/model --out model.onnx && python examples/onnx_without_torch.py model.onnx query.jpg photos/
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image, ImageOps

model, query, folder = (Path(argument) for argument in sys.argv[1:4])
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
# order of colours, mean, deviation and unit length are in the graph; resize and crop are written beside it
view = json.loads(session.get_modelmeta().custom_metadata_map["preprocessing"])


def pixels(path: Path) -> np.ndarray:
    """The view that the network was evaluated on: shorter side to `resize`, centre `crop`, 0 … 255."""
    image = ImageOps.exif_transpose(Image.open(path)).convert("L" if view["order"] == "L" else "RGB")
    if view["resize"]:
        size = [view["resize"] * side // (side if view["warp"] else min(image.size)) for side in image.size]
        image = image.resize(size, getattr(Image.Resampling, view["interpolation"].upper()))
    left, top = (round((side - view["crop"]) / 2) for side in image.size)
    image = image.crop((left, top, left + view["crop"], top + view["crop"]))
    return np.asarray(image, np.float32).reshape(view["crop"], view["crop"], -1).transpose(2, 0, 1)


def embed(paths: list[Path]) -> np.ndarray:
    batches = (np.stack([pixels(path) for path in paths[start : start + 32]]) for start in range(0, len(paths), 32))
    return np.concatenate([session.run(None, {"pixels": batch})[0] for batch in batches])


paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
embeddings = embed(paths)
similarities = embeddings @ embed([query])[0]
for place in np.argsort(-similarities)[:5]:
    print(f"{similarities[place]:.3f}  {paths[place].relative_to(folder)}")
