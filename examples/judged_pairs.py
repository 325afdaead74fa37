"""No classes, only pairs.csv: two photos, the same thing or not. From there `lookalike fit pairs.csv` does the rest.

python examples/judged_pairs.py
"""

import csv
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image, ImageDraw

from lookalike.fit import fit

draw = np.random.default_rng(0)
THINGS = [draw.uniform(4, 28, (5, 2)) for _ in range(30)]


def photo(thing: int) -> Image.Image:
    """A polygon in any colour, a little shaken."""
    picture = Image.new("RGB", (32, 32), tuple(draw.integers(0, 90, 3)))
    corners = (THINGS[thing] + draw.uniform(-2.5, 2.5, (5, 2))).flatten().tolist()
    ImageDraw.Draw(picture).polygon(corners, fill=tuple(draw.integers(130, 256, 3)))
    return picture


with TemporaryDirectory() as place:
    folder = Path(place)
    rows = [("left", "right", "same", "split")]
    for split, things in (("train", range(20)), ("test", range(20, 30))):  # the test shows things never trained on
        photos = [(thing, f"{thing}-{number}.png") for thing in things for number in range(6)]
        for thing, name in photos:
            photo(thing).save(folder / name)
        for (thing, left), (other, right) in combinations(photos, 2):
            if thing == other or draw.random() < 0.3:  # nobody judges all pairs: the others count for nothing
                rows.append((left, right, "yes" if thing == other else "no", split))
    with open(folder / "pairs.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)

    # on the command line: lookalike fit pairs.csv --out run --set train.steps=40
    run = fit(folder / "pairs.csv", out=folder / "run", overrides=["train.steps=40"])
    figures = {entry.name: entry.result["recall@1"] for entry in run.entries}
print(f"{len(rows) - 1:,} judged pairs; is the nearest judged photo the same thing?")
for name, value in figures.items():
    print(f"{value:6.1%}  {name}")
