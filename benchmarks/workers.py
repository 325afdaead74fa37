"""A Ray cluster of three nodes, of which two are killed and one is added: equal to one process, to the bit.

    python -m benchmarks.workers [--images 100000] [--shards 200] [--seed 0] [--folder F] [--json FILE]

Glyphs with noise of their own are written as PNG files and embedded by one process with a small network, then by the
cluster; a study of 12 cells is run by both too. All nodes are on this machine, with one processor each. At random
moments two are killed, and after the first kill one is added. Exit code 1 if a file or a figure differs.
"""

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.options import reader
from lookalike.data import arrays, folder, glyphs
from lookalike.features import Shards, embed_shards
from lookalike.models import Architecture, Model
from lookalike.runs.log import Event, ignore
from lookalike.sweeps import Study, gather, read, work
from lookalike.workers import Workers

Figures = dict[str, Any]
NODES, STORE = 3, 200 << 20
RECIPE = """
[data]
validation = 0.2
[images]
size = 16
short_side = 16
[model]
backbone = "conv4"
channels = 1
width = 4
dim = 8
[sampler]
name = "class_balanced"
batch_size = 32
per_class = 4
[loss]
name = "triplet"
[train]
steps = 60
validate_every = 20
"""
STUDY = """
recipe = "recipe.toml"
seeds = 4
baseline = "triplet"
[rows."triplet"]
[rows."contrastive"]
loss = { name = "contrastive" }
[rows."multi similarity"]
loss = { name = "multi_similarity" }
"""


class Nodes:
    """A head, which does no work, and nodes with one processor each; `disturb` kills and adds them at its moments."""

    def __init__(self, chance: random.Random) -> None:
        from ray.cluster_utils import Cluster

        self.chance = chance
        self.cluster: Any = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE},
        )
        self.nodes: list[Any] = []

    def fill(self) -> None:
        while len(self.nodes) < NODES:
            self.nodes.append(self.cluster.add_node(num_cpus=1, object_store_memory=STORE))

    def disturb(self, kills: list[Figures]) -> Callable[[int, int], None]:
        """To be called with how much is done; two nodes die at random shares, and one joins after the first death."""
        shares = sorted(self.chance.uniform(0.05, 0.7) for _ in range(2))

        def progress(done: int, total: int) -> None:
            if len(kills) < len(shares) and done >= shares[len(kills)] * total:
                victim = self.nodes.pop(self.chance.randrange(2 if not kills else len(self.nodes)))
                self.cluster.remove_node(victim, allow_graceful=False)
                kills.append({"done": done, "of": total})
                if len(kills) == 1:
                    self.nodes.append(self.cluster.add_node(num_cpus=1, object_store_memory=STORE))

        return progress


def draw(place: Path, count: int) -> None:
    """So many different glyphs, in one folder per class; what is there already stays."""
    data = glyphs()
    noise = np.random.default_rng(0)
    for number in range(count):
        row = number % len(data)
        file = place / f"class {int(data.labels[row]):04d}" / f"{number:06d}.png"
        pixels = data.images.open(row).decode()[0].numpy()
        grain = noise.integers(-8, 9, pixels.shape)
        if not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.clip(pixels + grain, 0, 255).astype(np.uint8)).save(file)


def embedded(place: Path, nodes: Nodes, given: argparse.Namespace) -> Figures:
    """All images by one process and by the cluster."""
    draw(place / "glyphs", given.images)
    data = folder(place / "glyphs")
    model = Model.create(Architecture("conv4", {"channels": 1, "width": 16}, dim=32))
    began = monotonic()
    one = embed_shards(model, data, place / "one", given.shards, backend="torch")
    between, kills = monotonic(), list[Figures]()
    nodes.fill()
    workers, disturb = Workers(on=nodes.cluster.address), nodes.disturb(kills)
    many = embed_shards(model, data, place / "many", given.shards, backend="torch", workers=workers, progress=disturb)
    times = {"seconds_alone": between - began, "seconds_cluster": monotonic() - between}
    return compared(one, many) | times | {"shards": given.shards, "kills": kills}


def compared(one: Shards, many: Shards) -> Figures:
    ids = many.joined()["ids"].tolist()
    numbers = range(one.plan.shards)
    return {
        "images": len(ids),
        "every_image_once": len(ids) == len(set(ids)) == one.plan.images,
        "files_equal": all(one.path(number).read_bytes() == many.path(number).read_bytes() for number in numbers),
        "left_over": len([path for path in many.folder.iterdir() if path.name.startswith(".")]),
    }


def studied(place: Path, nodes: Nodes) -> Figures:
    """Twelve cells by one process and by the cluster."""
    place.mkdir(parents=True, exist_ok=True)
    (place / "recipe.toml").write_text(RECIPE)
    (place / "study.toml").write_text(STUDY)
    study, kills = read(place / "study.toml", "glyphs"), list[Figures]()
    pixels = np.random.default_rng(0).integers(0, 256, (480, 16, 16), dtype=np.uint8)
    data = arrays(pixels, [f"class {row // 12:02d}" for row in range(480)])
    nodes.fill()
    disturb = nodes.disturb(kills)

    def tell(event: Event) -> None:
        if event["event"] == "note" and " of " in event["text"].partition(":")[0]:
            done, _, total = event["text"].partition(":")[0].partition(" of ")
            disturb(int(done), int(total))

    work(study, data, place / "study one", ignore, lambda: False)
    work(study, data, place / "study many", tell, lambda: False, workers=Workers(on=nodes.cluster.address))
    one, many = (figures(study, place / f"study {name}") for name in ("one", "many"))
    return {"cells": many["done"], "figures_equal": one == many, "kills": kills}


def figures(study: Study, out: Path) -> Figures:
    """Everything that a study tells but how long it took."""
    content: Figures = json.loads(json.dumps(gather(study, out)))
    for row in content["rows"]:
        del row["seconds"]
        for run in row["runs"]:
            del run["seconds"]
    return content


def main() -> None:
    parser = reader(__doc__, images=100_000, shards=200, seed=0)
    parser.add_argument("--folder", type=Path, help="keep everything here instead of in a temporary folder")
    given = parser.parse_args()
    nodes = Nodes(random.Random(given.seed))
    try:
        with tempfile.TemporaryDirectory() as temporary:
            place = given.folder or Path(temporary)
            result = {"embedding": embedded(place, nodes, given), "study": studied(place, nodes)}
    finally:
        nodes.cluster.shutdown()
    print(json.dumps(result, indent=2))
    if given.json:
        given.json.write_text(json.dumps(result, indent=2) + "\n")
    sound = result["embedding"]["every_image_once"] and result["embedding"]["files_equal"]
    sys.exit(0 if sound and result["study"]["figures_equal"] and result["study"]["cells"] == 12 else 1)


if __name__ == "__main__":
    main()
