"""A search small enough for a test: sixteen classes of grey noise, a tiny network, a few steps."""

from pathlib import Path

import numpy as np
from PIL import Image

LEARNING = """
[model]
backbone = "conv4"
channels = 1
width = 4
dim = 4
[sampler]
name = "class_balanced"
batch_size = 8
per_class = 2
[loss]
name = "triplet"
"""
RECIPE = f"""
[images]
size = 16
short_side = 16
{LEARNING}
[train]
steps = 2
validate_every = 1
[protocol]
folds = 2
models = 1
"""
TUNE = """
[tune]
"optimiser.lr" = { low = 1e-4, high = 1e-2, log = true }
"loss.name" = { choices = ["triplet", "multi_similarity"] }
"loss.margin" = { low = 0.05, high = 0.5, when = "loss.name=triplet" }
"""


def images(folder: Path) -> Path:
    draw = np.random.default_rng(0)
    for number in range(16):
        plain = draw.integers(0, 255, (16, 16))
        (folder / f"class{number:02d}").mkdir(parents=True)
        for place in range(4):
            noisy = np.clip(plain + draw.normal(0, 50, (16, 16)), 0, 255).astype("uint8")
            Image.fromarray(noisy).save(folder / f"class{number:02d}" / f"{place}.png")
    return folder


def recipe(folder: Path, text: str = RECIPE + TUNE) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "search.toml").write_text(text)
    return folder / "search.toml"
