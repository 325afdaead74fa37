"""The tables and figures of the papers as studies on the papers' own data: a list of them, and how long they take.

Hours are an estimate, for none of them was run here: images that pass the network, times its multiplications, by a GPU
that sustains `SPEED`. Clustering, decoding and what a GPU does between batches are not in it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lookalike.recipe import Recipe
from lookalike.sweeps import Study, read
from papers.reproduction.planned import ROOT

KINDS = ("table_", "figure_", "ablation_", "supplement_")
SPEED = 10e12  # operations per second; a ResNet-50 then learns from 400 images in a second
MULTIPLICATIONS = {  # per image of 224 × 224, in billions
    "bn_inception": 2.0,
    "densenet201": 4.3,
    "googlenet": 1.5,
    "resnet18": 1.8,
    "resnet50": 4.1,
}
FOLDERS = {
    "cub200": "birds/",
    "cars196": "cars/",
    "sop": "products/",
    "inshop": "clothes/",
    "vehicle_id": "vehicles/",
}
STOPPED = {"cub200": 5_000, "cars196": 5_000, "sop": 78_000, "inshop": 102_000}  # steps until validation ends a run
# train and test images; the test images of VehicleID are those of its three lists
IMAGES = {
    "cub200": (5_864, 5_924),
    "cars196": (8_054, 8_131),
    "sop": (59_551, 60_502),
    "inshop": (25_882, 26_830),
    "vehicle_id": (110_178, 40_000),
}
NEAREST = {  # studies of the reproduction that were run here
    "roth/table_4_cub": "cub_roth_losses",
    "roth/figure_5_cub": "cub_roth_losses",
    "roth/table_7_cub": "cub_roth_samplers",
    "roth/figure_8_cub": "cub_p_switch",
    "roth/figure_13_cub": "cub_mixup",
    "ccp/table_2_cub": "cub_ccp",
    "ccp/ablation_batch_size_cub": "cub_ccp_batch_size",
    "ccp/ablation_proxies_cub": "cub_ccp_proxies",
    "fastap/table_2_sop": "omniglot_fastap",
    "fastap/figure_3_sop": "cub_fastap_batch_size",
    "multi_similarity/table_2_cars": "cub_ms_ablation_printed",
    "multi_similarity/table_3_cub": "cub_embedding_size",
    "multi_similarity/table_2_released_cars": "cars_ms_ablation",
    "ccp/table_2_cars": "cars_ccp",
    "roth/table_5_cars": "cars_roth_losses",
    "top_k/table_1_cars": "cars_top_k",
    "multi_similarity/supplement_table_1_cub": "cub_ms_batch_size",
    "top_k/table_1_cub": "cub_top_k",
}


class Table(NamedTuple):
    """One table or figure of a paper on one dataset."""

    file: Path
    study: Study

    @property
    def place(self) -> str:
        return f"{self.file.parent.name}/{self.file.stem}"

    @property
    def data(self) -> str:
        return str(self.study.cells[0].recipe.data.name)

    @property
    def command(self) -> str:
        paper, name = self.place.split("/")
        return f"lookalike study papers/{self.place}.toml {self.data}={FOLDERS[self.data]} --out {paper}_{name}"

    @property
    def hours(self) -> float:
        return sum(_seconds(cell.recipe, self.data) for cell in self.study.cells) / 3600


def tables() -> list[Table]:
    files = sorted(file for kind in KINDS for file in (ROOT / "papers").glob(f"*/{kind}*.toml"))
    return [Table(file, read(file)) for file in files]


def listing(listed: Sequence[Table]) -> str:
    """The table of papers/README.md."""
    lines = ["| command | rows | runs | hours | run here |", "|---|---|---|---|---|"]
    for table in listed:
        here = f"`{NEAREST[table.place]}`" if table.place in NEAREST else "–"
        count = f"{len(table.study.rows)} | {len(table.study.cells):,}"
        lines.append(f"| `{table.command}` | {count} | {_round(table.hours):,} | {here} |")
    return "\n".join(lines)


def _seconds(recipe: Recipe, data: str) -> float:
    """Of one cell: a picture that teaches is computed three times, forth and twice back."""
    train, test = IMAGES[data]
    table, batch = recipe.train, int(recipe.sampler.settings.get("batch_size", 112))
    crossed = recipe.protocol.name == "cross_validation"
    models = (recipe.protocol.models or recipe.protocol.folds) if crossed else 1
    epoch = train // batch
    steps = 0 if table.deliver == "untrained" else (table.epochs or 0) * epoch or table.steps or 0
    steps = min(steps, STOPPED[data]) if crossed else steps
    every = (table.validate_epochs or 0) * epoch or table.plan.validate_every
    judged = test if recipe.protocol.select == "test_max" else train // recipe.protocol.folds if crossed else 0
    images = 3 * steps * batch + steps // every * judged + test + (train if recipe.evaluation.train else 0)
    return models * images * 2e9 * MULTIPLICATIONS[recipe.model.architecture.backbone] / SPEED


def _round(hours: float) -> int:
    """To two digits, at least 1.

    >>> _round(0.3), _round(12.4), _round(1234.0)
    (1, 12, 1200)
    """
    return max(1, int(float(f"{hours:.2g}")))
