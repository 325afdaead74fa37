"""Labels with their chances as a table that `lookalike fit` reads: doubted ones first, which it leaves out.

Their verdict is "maybe"; whoever has looked at one corrects its label, or writes another verdict, such as checked.
"""

import csv
from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from lookalike.data.audit.label_noise import CONCLUSIVE, LabelChances, WrongLabels
from lookalike.data.dataset import Dataset
from lookalike.data.formats.table import guarded
from lookalike.data.images.source import Files
from lookalike.errors import check
from lookalike.files import printable, whole_file

LIKELY = 0.5
COLUMNS = ("path", "label", "verdict", "chance", "suggested label")


def doubted(chances: LabelChances, labels: Int64[Tensor, " n"], share: WrongLabels) -> Bool[Tensor, " n"]:
    """The least likely labels: as many as may be wrong; where the vectors cannot tell, as many as errors at random.

    A label that is likelier than all others together is not doubted. A class of which every image would be doubted
    keeps its likeliest half: it may look like another one.
    """
    assumed = share.high if share.conclusive else share.low
    count = round(assumed * len(labels)) if assumed < CONCLUSIVE else 0
    result = torch.zeros(len(labels), dtype=torch.bool)
    result[chances.own.argsort(stable=True)[:count]] = True
    result &= chances.own < LIKELY
    for label in torch.unique(labels).tolist():
        rows = (labels == label).nonzero().flatten()
        if bool(result[rows].all()):
            result[rows[chances.own[rows].argsort(stable=True)[len(rows) // 2 :]]] = False
    return result


def write_labels(
    dataset: Dataset, chances: Float[Tensor, " n"], others: Sequence[str], doubts: Bool[Tensor, " n"], table: Path
) -> None:
    """One row per image, the least likely label first; `others` are the likeliest other labels."""
    images = dataset.images
    check(isinstance(images, Files), "images that are no files have no paths to write: leave out --labels")
    assert isinstance(images, Files)
    with whole_file(table, "w") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for row in chances.argsort(stable=True).tolist():
            names = [str(images.path(row).absolute()), dataset.label_names[int(dataset.labels[row])]]
            verdict = "maybe" if doubts[row] else "likely"
            path, label, other = (guarded(printable(name)) for name in (*names, others[row]))
            rows.writerow([path, label, verdict, f"{float(chances[row]):.4f}", other])
