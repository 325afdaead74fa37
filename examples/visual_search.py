"""Visual search: learn from some drawings, index others, ask with a new one.

python examples/visual_search.py
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image, ImageDraw

from lookalike.fit import fit
from lookalike.search import Index

draw = np.random.default_rng(0)
SHAPES = [draw.uniform(4, 28, (5, 2)) for _ in range(24)]


def photo(shape: int) -> Image.Image:
    """A polygon in any colour, a little shaken."""
    picture = Image.new("RGB", (32, 32), tuple(draw.integers(0, 90, 3)))
    corners = (SHAPES[shape] + draw.uniform(-1.5, 1.5, (5, 2))).flatten().tolist()
    ImageDraw.Draw(picture).polygon(corners, fill=tuple(draw.integers(130, 256, 3)))
    return picture


with TemporaryDirectory() as place:
    photos, shop = Path(place, "photos"), Path(place, "shop")
    for shape in range(24):
        folder = photos if shape < 16 else shop  # the shop sells shapes that were never trained on
        (folder / f"shape {shape}").mkdir(parents=True)
        for number in range(8):
            photo(shape).save(folder / f"shape {shape}" / f"{number}.png")

    run = fit(photos, out=Path(place, "run"), overrides=["train.steps=40"])
    index = Index.create(Path(place, "shop.index"), model=run.folder / "model")
    index.add(shop)
    right = 0
    for shape in range(16, 24):
        answer = index.search(photo(shape), k=3)
        right += answer.hits[0].label == f"shape {shape}"
        print(
            f"shape {shape}: {', '.join(f'{hit.label} {hit.similarity:.2f}' for hit in answer.hits)}; {answer.verdict}"
        )
    index.close()
print(f"{right} of 8 found")
