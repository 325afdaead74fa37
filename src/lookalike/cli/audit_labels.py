"""`lookalike audit --run RUN`: labels that a trained model contradicts, as a table to work through."""

import json
from pathlib import Path
from typing import Any

import torch
import typer
from torch import Tensor

from lookalike import data
from lookalike.cli.bars import bar
from lookalike.data import Dataset
from lookalike.data.audit.audit import SUSPICIOUS, Audit
from lookalike.data.audit.label_noise import label_chances, wrong_labels
from lookalike.data.audit.label_table import doubted, write_labels
from lookalike.data.audit.suspicious_labels import COLUMNS, as_table, suspicious_labels, write_table
from lookalike.discover.photos import imagenet_features
from lookalike.errors import check
from lookalike.features import embed, extract
from lookalike.labels import encode
from lookalike.models import Model
from lookalike.report.run.record import read
from lookalike.runs import RunFolder

SHOWN = 20  # on the terminal; the CSV file has all


def audit_test_images(run: Path, as_json: bool) -> None:
    """The labels of a run's test images: it has not seen their classes, so it could not learn their mistakes."""
    test = read(run).test
    check(bool(test.paths), f"the test images of '{run}' have no file names: run `lookalike audit DATA --run {run}`")
    (codes,), _ = encode(test.all_labels)
    with bar("comparing labels with neighbours") as progress:
        doubts = suspicious_labels(torch.from_numpy(test.all_vectors), torch.from_numpy(codes), progress=progress)
    rows = as_table(doubts, test.all_labels, test.paths)
    target = RunFolder(run).suspicious_labels
    write_table(rows, target)
    if as_json:
        typer.echo(json.dumps({"file": str(target), "labels": rows}, indent=2, ensure_ascii=False))
        return
    for row in rows[:SHOWN]:
        typer.echo(f"{row['path']} [{row['label']}] looks like {row['suggested label']}: {row['evidence']}")
    if len(rows) > SHOWN:
        typer.echo(f"and {len(rows) - SHOWN:,} more")
    typer.echo(f"{len(rows):,} of {len(test.all_labels):,} labels look suspicious: {target}")


def embedded(run: Path, dataset: Dataset, threads: int) -> tuple[Dataset, Tensor]:
    """The readable images of a dataset, and their vectors by the model of a run."""
    model = Model.load(RunFolder(run).model)
    with bar("reading images") as progress:
        dataset = data.readable(dataset, threads=threads, progress=progress)
    with bar("embedding images") as progress:
        return dataset, embed(model, dataset, progress)


def save_suspicious(run: Path, result: Audit) -> None:
    """The suspicious labels of an audit as RUN/suspicious_labels.csv."""
    items = [item for finding in result.findings if finding.kind == SUSPICIOUS for item in finding.items]
    cells = [(item["path"], item["label"], item["looks_like"], item["evidence"]) for item in items]
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in cells]
    target = RunFolder(run).suspicious_labels
    write_table(rows, target)
    typer.echo(f"{len(rows):,} labels look suspicious: {target}", err=True)


def readable_vectors(dataset: Dataset, vectors: Tensor | None, threads: int) -> tuple[Dataset, Tensor]:
    """The readable images with vectors: given ones, or features of a network that was trained on ImageNet."""
    if vectors is not None:
        check(len(vectors) == len(dataset), f"{len(vectors)} embeddings for {len(dataset)} images: give one each")
        return dataset, vectors
    with bar("reading images") as progress:
        readable = data.readable(dataset, threads=threads, progress=progress)
    with bar("embedding images") as progress:
        found = extract(imagenet_features(), readable, backend="auto", progress=progress)
    unit = torch.nn.functional.normalize(found)
    return readable, unit - unit.mean(0)


def write_doubts(dataset: Dataset, vectors: Tensor, table: Path) -> tuple[str, dict[str, Any]]:
    """Write every label with its chance, doubts first; how many are wrong, as a sentence and as figures."""
    check(dataset.sets is None, "images with several labels each cannot be doubted one by one: leave out --labels")
    names, codes = torch.unique(dataset.labels, return_inverse=True)
    chances, share = label_chances(vectors, codes), wrong_labels(vectors, codes)
    doubts = doubted(chances, codes, share)
    others = [dataset.label_names[int(names[code])] for code in chances.other.tolist()]
    write_labels(dataset, chances.own, others, doubts, table)
    low, high = (share.low, share.high) if share.conclusive else (None, None)
    figures = {"low": low, "high": high, "doubted": int(doubts.sum()), "labels": len(codes), "file": str(table)}
    return f"{share} {figures['doubted']:,} of {len(codes):,} labels are doubted: {table}", {"wrong_labels": figures}
