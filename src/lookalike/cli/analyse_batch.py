"""`lookalike analyse batch SAMPLER…`: what a sampler's batches look like, on your data or on a small example."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from torch import Tensor

from lookalike import catalog, data, samplers
from lookalike.analysis import (
    Composition,
    describe_batches,
    draw_batches,
    draw_contact_sheet,
    draw_distances,
    draw_places,
    save,
)
from lookalike.analysis.batches import BatchSpread
from lookalike.analysis.example import example
from lookalike.cli.bars import bar
from lookalike.cli.images import read_vectors
from lookalike.errors import check
from lookalike.features import centred_pixels

EXAMPLE = "lookalike analyse batch class_balanced category_pairs --data glyphs --out figures/"

MOST = 50  # batches that are described
OF_EXAMPLE, OF_DATA = (12, 3), (32, 4)  # batch size and images per class


def run(
    names: Annotated[list[str] | None, typer.Argument(metavar="SAMPLER", help="Default: all samplers.")] = None,
    source: Annotated[str, typer.Option("--data", help="A folder, a table or a name; else a small example.")] = "",
    split: Annotated[str, typer.Option("--split", help="The split to use, if the data has splits.")] = "train",
    batch_size: Annotated[int, typer.Option("--batch-size", min=0, help="0: 32, or 12 for the example.")] = 0,
    per_class: Annotated[int, typer.Option("--per-class", min=0, help="0: 4, or 3 for the example.")] = 0,
    embeddings: Annotated[
        Path | None, typer.Option("--embeddings", help="A .npy file with one row per image; without it, raw pixels.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the samplers.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", help="Also write figures here, as .svg, .png and .json.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Describe the batches that samplers draw.

    Shows classes, images per class, categories, and distances within and between classes. With --data and --out it also
    draws the images of the first batch and the distances of its pairs.
    """
    dataset = _dataset(source, split) if source else None
    facts = _facts(dataset, embeddings, names or samplers.names())
    default = OF_DATA if dataset is not None else OF_EXAMPLE
    settings = {"batch_size": batch_size or default[0], "per_class": per_class or default[1], "seed": seed}
    labels, categories, vectors = facts["labels"], facts["categories"], facts["vectors"]
    possible = [name for name in samplers.names() if categories is not None or "category" not in name]
    batches = {name: compose(name, facts, settings) for name in names or possible}
    table = {name: describe_batches(some, labels, categories, vectors) for name, some in batches.items()}
    if out is not None:
        for name in batches:
            draw(name, batches[name], facts, dataset, table[name], out)
        if dataset is not None:
            what = "raw pixels" if embeddings is None else "embeddings"
            figure = draw_distances(batches, labels, vectors, what)
            save(figure, {name: row.as_json() for name, row in table.items()}, out, "batch_distances")
    document = {name: row.as_json() for name, row in table.items()}
    typer.echo(json.dumps(document, indent=2) if as_json else as_table(table))


def _dataset(source: str, split: str) -> data.Dataset:
    dataset = data.load(source)
    return dataset if dataset.splits is None else dataset.where(split=split)


def _facts(dataset: data.Dataset | None, embeddings: Path | None, names: list[str]) -> dict[str, Any]:
    """Labels, categories and vectors of the data or of the example; the names are checked before images are read."""
    for name in names:
        catalog.member("sampler", samplers.MEMBERS, name)
    if dataset is None:
        check(embeddings is None, "--embeddings belong to data: give --data too")
        small = example()
        return {"labels": small.labels, "categories": small.categories, "names": (), "vectors": small.vectors}
    if embeddings is not None:
        vectors = _read(embeddings, len(dataset))
    else:
        with bar("reading pixels") as progress:
            vectors = centred_pixels(dataset, progress)
    names_of = dataset.category_names
    return {"labels": dataset.labels, "categories": dataset.categories, "names": names_of, "vectors": vectors}


def _read(path: Path, rows: int) -> Tensor:
    vectors = read_vectors(path)
    check(
        vectors.dim() == 2 and len(vectors) == rows,
        f"'{path}' holds {tuple(vectors.shape)}, the split has {rows} images: give one row per image",
    )
    return vectors


def compose(name: str, facts: Mapping[str, Any], settings: Mapping[str, Any]) -> list[list[int]]:
    """The first batches of an epoch; settings that a sampler does not take are left out."""
    possible = catalog.settings_of(samplers.MEMBERS[name])
    own = {key: value for key, value in settings.items() if key in possible}
    bank = None
    if samplers.needs_bank(name):
        bank = samplers.EmbeddingBank.of(facts["vectors"])
        half = min(512, len(bank) // 2)
        own["big_batch"] = half - half % own["per_class"]
    sampler = samplers.build(name, labels=facts["labels"], categories=facts["categories"], bank=bank, **own)
    return [batch for batch, _ in zip(sampler, range(MOST), strict=False)]


def draw(
    name: str,
    batches: list[list[int]],
    facts: Mapping[str, Any],
    dataset: data.Dataset | None,
    composition: Composition,
    out: Path,
) -> None:
    """NAME: the batches as a grid, or as points if embeddings in a plane choose them. NAME_images: the first batch."""
    if samplers.needs_bank(name) and facts["vectors"].shape[1] == 2:
        figure = draw_places(batches, facts["labels"], facts["vectors"])
    else:
        figure = draw_batches(batches, facts["labels"], facts["categories"], facts["names"])
    save(figure, {"composition": composition.as_json(), "batches": batches[:3]}, out, name)
    if dataset is not None:
        first = batches[0]
        images = [dataset.images.open(row).decode() for row in first]
        sheet = draw_contact_sheet(images, dataset.labels[first], dataset.label_names)
        save(sheet, {"rows": first, "labels": dataset.labels[first].tolist()}, out, f"{name}_images")


def as_table(table: Mapping[str, Composition]) -> str:
    """One line per sampler: means over the batches, with least and most where they differ."""
    heads = {
        "classes": "classes",
        "images_per_class": "per class",
        "categories": "categories",
        "repeated": "repeated",
        "within": "within",
        "between": "between",
        "nearest_negative": "nearest negative",
    }
    width = max(map(len, table))
    lines = [f"{'':<{width}}  {'batches':>7}  {'shown':>6}  " + "  ".join(f"{head:>16}" for head in heads.values())]
    for name, row in table.items():
        cells = [cell(getattr(row, key)) for key in heads]
        shown = f"{100 * row.images_shown:.0f}%"
        lines.append(f"{name:<{width}}  {row.batches:>7}  {shown:>6}  " + "  ".join(f"{cell:>16}" for cell in cells))
    lines += ["", "per batch: mean (least … most); shown: images of the data in these batches; distances: Euclidean"]
    return "\n".join(lines)


def cell(spread: BatchSpread | Mapping[str, float] | None) -> str:
    """
    >>> cell(BatchSpread(2.5, 1, 4)), cell({"mean": 3.0, "least": 3, "most": 3}), cell(None)
    ('2.5 (1…4)', '3', '-')
    """
    if spread is None:
        return "-"
    mean, least, most = spread.values() if isinstance(spread, Mapping) else spread
    return f"{mean:.4g}" if least == most else f"{mean:.3g} ({least:.3g}…{most:.3g})"
