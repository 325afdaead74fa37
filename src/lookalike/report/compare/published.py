"""Figures from papers, as data: paper, table, protocol and backbone with every one. Nothing here measured them."""

import json
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from lookalike.errors import unknown

PROTOCOLS = {
    "roth": "best test epoch of each metric, 5 seeds",
    "mlrc": "fair protocol: 4 models, validated on train classes",
    "ms": "best test iteration",
    "fastap": "best test epoch",
    "top_k": "not described",
    "as cited": "as cited there, not measured by its authors",
}


@dataclass(frozen=True)
class PublishedRow:
    """One row of a published table."""

    method: str
    paper: str
    title: str
    document: str
    table: str
    dataset: str
    protocol: str
    backbone: str
    dim: int | None
    metrics: dict[str, float]
    std: dict[str, float] = field(default_factory=dict)
    loss: str | None = None
    note: str = ""

    @property
    def source(self) -> str:
        return f"published: {self.paper}, {self.table}"

    def as_json(self) -> dict[str, Any]:
        return {"source": "published", **{name: value for name, value in self.__dict__.items() if value}}


def datasets() -> list[str]:
    return sorted({row["dataset"] for row in _content()["rows"]})


def of_dataset(name: str) -> list[PublishedRow]:
    """Every published row about a dataset, the best recall@1 first.

    >>> best = of_dataset("cub200")[0]
    >>> best.backbone, best.source.startswith("published: ")
    ('bn_inception', True)
    """
    if name not in datasets():
        raise unknown("dataset with published figures", name, datasets())
    content = _content()
    rows = [_row(row, content["papers"][row["paper"]]) for row in content["rows"] if row["dataset"] == name]
    return sorted(rows, key=lambda row: -row.metrics.get("recall@1", 0.0))


def best_of_each(rows: list[PublishedRow]) -> list[PublishedRow]:
    """The best row of every paper, protocol and backbone: a short list for a terminal."""
    best: dict[tuple[str, str, str], PublishedRow] = {}
    for row in rows:  # the best comes first
        best.setdefault((row.paper, row.protocol, row.backbone), row)
    return list(best.values())


def _row(row: dict[str, Any], paper: dict[str, str]) -> PublishedRow:
    words = [str(row[key]) for key in ("miner", "sampler", "split") if key in row]
    doubtful = [f"{name} is doubtful in the document" for name in row.get("doubtful", {})]
    batch = [f"batch {row['batch']}"] if "batch" in row else []
    labels = [f"{name} of {kind}" for name, kind in row.get("labels", {}).items()]
    note = "; ".join([*words, *batch, *labels, *doubtful, *([row["note"]] if "note" in row else [])])
    return PublishedRow(
        row["method"],
        paper["short"],
        paper["title"],
        paper["document"],
        row["table"],
        row["dataset"],
        row["protocol"],
        row.get("backbone", "not named"),
        row.get("dim"),
        row["metrics"],
        row.get("std", {}),
        row.get("loss"),
        note,
    )


def _content() -> dict[str, Any]:
    text = files("lookalike.report.compare").joinpath("published.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content
