"""Tiny folders of labelled images: classes are coarse random pictures, images are noisy copies of them."""

from pathlib import Path

import numpy as np
from PIL import Image


def folder(root: Path, classes: int = 12, each: int = 6, side: int = 20, grey: bool = True, noise: int = 60) -> Path:
    draw = np.random.default_rng(0)
    shape = (5, 5) if grey else (5, 5, 3)
    for name in range(classes):
        coarse = draw.integers(0, 256, shape)
        for number in range(each):
            noisy = np.clip(coarse + draw.integers(-noise, noise, shape), 0, 255).astype(np.uint8)
            file = root / f"class {name:02d}" / f"{number}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(noisy).resize((side, side), Image.Resampling.BICUBIC).save(file)
    return root
