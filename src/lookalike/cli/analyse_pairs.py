"""`lookalike analyse pairs LOSS…`: how a loss weighs the pairs of a batch (General Pair Weighting)."""

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Tensor, nn

from lookalike import data, losses, samplers
from lookalike.analysis import (
    Dependence,
    dependence,
    draw_weight_curves,
    draw_weight_maps,
    map_numbers,
    pair_losses,
    save,
    similarity_types,
    weight_curves,
    weight_maps,
)
from lookalike.analysis.weighting import check_inside, reason_outside
from lookalike.cli.bars import bar
from lookalike.cli.evaluate import read
from lookalike.errors import check, unknown
from lookalike.features import centred_pixels

EXAMPLE = "lookalike analyse pairs multi_similarity triplet:similarity=cosine --out figures/"

SHOWN = ("cosine_contrastive", "binomial_deviance", "triplet", "histogram", "lifted_star", "nca", "multi_similarity")
BATCH, PER_CLASS = 32, 4


def run(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="LOSS", help="NAME or NAME:setting=value,…; without any, every pair loss."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Also write weights and maps here, as .svg, .png and .json.")
    ] = None,
    embeddings: Annotated[
        Path | None, typer.Option("--embeddings", help="Draw the maps of a batch from this .npz, not of glyphs.")
    ] = None,
    trials: Annotated[int, typer.Option("--trials", min=1, help="Random trials per loss for the table.")] = 300,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the trials and of the batch.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Show what the weight of a negative pair depends on.

    S: the weight changes when all similarities change together; P: when only those of the anchor's positives do; N:
    when only those of its other negatives do. The figures show the weight as one of them varies, and the weights of
    all pairs of a real batch.
    """
    several = {name: build(name) for name in names or pair_losses()}
    table = types(several, trials, seed)
    paper = {} if names else similarity_types(trials, torch.Generator().manual_seed(seed))
    shown = several if names else {name: several[name] for name in SHOWN}
    document: dict[str, Any] = {"trials": trials, "seed": seed, "losses": as_rows(table), "paper": as_rows(paper)}
    if out is not None:
        document |= draw(shown, batch(embeddings, seed), document, out)
    if as_json:
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    typer.echo(as_table(table, paper))


def build(text: str) -> nn.Module:
    """`triplet:similarity=cosine,margin=0.1` as a loss; one without pair weights is refused with the reason."""
    name, _, rest = text.partition(":")
    if name not in losses.MEMBERS:
        raise unknown("loss", name, losses.MEMBERS)
    check_inside(losses.MEMBERS[name])
    settings: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        check(bool(equals), f"'{part}' in '{text}' is not a setting: write {name}:setting=value")
        try:
            settings[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            settings[key] = value
    return losses.build(name, **settings)


def types(several: Mapping[str, nn.Module], trials: int, seed: int) -> dict[str, Dependence]:
    table = {}
    with bar("trying") as progress:
        for done, (name, loss) in enumerate(several.items(), 1):
            table[name] = dependence(loss, trials=trials, generator=torch.Generator().manual_seed(seed))
            progress(done, len(several))
    return table


def batch(file: Path | None, seed: int) -> tuple[Tensor, Tensor]:
    """Eight classes of four samples each: of the file, or of the glyphs' train classes as raw pixels."""
    if file is None:
        dataset = data.load("glyphs").where(split="train")
        rows = next(iter(samplers.ClassBalanced(dataset.labels, BATCH, PER_CLASS, seed=seed)))
        return centred_pixels(dataset.subset(rows)).double(), dataset.labels[rows]
    import numpy as np

    arrays = read(file)
    labels = torch.from_numpy(np.unique(arrays["labels"], return_inverse=True)[1].astype(np.int64))
    classes = min(BATCH // PER_CLASS, int(labels.max()) + 1)
    rows = next(iter(samplers.ClassBalanced(labels, classes * PER_CLASS, PER_CLASS, batches=1, seed=seed)))
    return torch.from_numpy(arrays["embeddings"][rows]).double(), labels[rows]


def draw(
    several: Mapping[str, nn.Module], examined: tuple[Tensor, Tensor], types_of: Mapping[str, Any], out: Path
) -> dict[str, Any]:
    """Writes both figures and returns their numbers for the JSON."""
    curves = {name: weight_curves(loss) for name, loss in several.items()}
    numbers = {name: curve.as_json() for name, curve in curves.items()}
    save(draw_weight_curves(curves), {**types_of, "curves": numbers}, out, "pair_weights")
    maps = weight_maps(several, *examined)
    shares = map_numbers(maps, examined[1])
    whole = {name: {"shares": shares[name], "gradients": _rounded(maps[name])} for name in maps}
    save(draw_weight_maps(maps, *examined), whole, out, "pair_maps")
    return {"curves": numbers, "maps": shares}


def _rounded(gradients: Tensor) -> list[list[float]]:
    return [[float(f"{value:.4g}") for value in row] for row in gradients.tolist()]


def as_rows(table: Mapping[str, Dependence]) -> dict[str, dict[str, bool]]:
    return {name: {"S": row.itself, "P": row.positives, "N": row.negatives} for name, row in table.items()}


def as_table(table: Mapping[str, Dependence], paper: Mapping[str, Dependence]) -> str:
    lines = _lines("loss, default settings" if paper else "loss", table)
    if paper:
        lines = [
            *_lines("table 1 of the Multi-Similarity paper", paper),
            "",
            *lines,
            "",
            "outside General Pair Weighting",
        ]
        reasons = {name: reason_outside(kind) for name, kind in losses.MEMBERS.items()}
        lines += [f"  {name}: {reason}" for name, reason in reasons.items() if reason]
    return "\n".join(lines)


def _lines(title: str, table: Mapping[str, Dependence]) -> list[str]:
    width = max(len(title), *map(len, table))
    rows = [f"{title:<{width}}  S P N"]
    for name, row in table.items():
        marks = ("•" if depends else "-" for depends in (row.itself, row.positives, row.negatives))
        rows.append(f"{name:<{width}}  {' '.join(marks)}")
    return rows
