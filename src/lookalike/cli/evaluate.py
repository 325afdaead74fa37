"""`lookalike evaluate FILE.npz`, or `MODEL DATA`: every metric of embeddings."""

import json
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from lookalike import data
from lookalike.cli.bars import bar
from lookalike.cli.images import readable_images
from lookalike.errors import check
from lookalike.evaluation import Result, evaluate
from lookalike.evaluation.result import Share
from lookalike.files import write_text

EXAMPLE = 'lookalike evaluate test.npz --metrics "recall@1,2,4,8 map@r nmi" --json'

ARRAYS = ("embeddings", "labels", "gallery_embeddings", "gallery_labels", "categories", "ignore", "gallery_ignore")
UNMEASURED = ("paths", "gallery_paths", "fingerprint")  # also in the files that `embed` writes, as are SETS


def run(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.npz|MODEL",
            help=f"A file of arrays ({', '.join(ARRAYS)}; only the first two are required) or the folder of a model.",
        ),
    ],
    source: Annotated[
        str | None, typer.Argument(metavar="DATA", help="With MODEL: the labelled images to embed.")
    ] = None,
    split: Annotated[
        str, typer.Option("--split", help="Which split of DATA to measure, if it has splits; 'all': every image.")
    ] = "test",
    metrics: Annotated[
        str, typer.Option("--metrics", help="Metrics, such as 'recall@1,10 map@r nmi'. Default: all.")
    ] = "",
    normalise: Annotated[
        str, typer.Option("--normalise", help="sphere, ball or none. Default: the model's geometry, otherwise sphere.")
    ] = "",
    ties: Annotated[
        str, typer.Option("--ties", help="How to rank ties: pessimistic, optimistic or expected.")
    ] = "pessimistic",
    seed: Annotated[int, typer.Option("--seed", help="Seed of the k-means clustering.")] = 0,
    by_class: Annotated[
        str, typer.Option("--by-class", metavar="METRIC", help="Also show this metric for each class.")
    ] = "",
    by_category: Annotated[
        str, typer.Option("--by-category", metavar="METRIC", help="Also show this metric for each category.")
    ] = "",
    worst: Annotated[
        int, typer.Option("--worst", min=0, help="Also show this many of the worst queries and confused classes.")
    ] = 0,
    out: Annotated[Path | None, typer.Option("--out", help="Also write the whole result to this JSON file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Compute exact retrieval and clustering metrics.

    Without gallery arrays, every embedding is a query and all others are its gallery. A query does not see gallery
    items whose `gallery_ignore` equals its own `ignore` (the same camera, for example).
    """
    arrays, natural = (read(file), "sphere") if source is None else embedded(file, source, split)
    labels, gallery_labels = several_labels(arrays)
    with bar("ranking") as progress:
        result = evaluate(
            arrays["embeddings"],
            labels,
            gallery=arrays.get("gallery_embeddings"),
            gallery_labels=gallery_labels,
            categories=arrays.get("categories"),
            ignore=ignored(arrays),
            metrics=metrics or None,
            normalise=normalise or natural,  # type: ignore[arg-type]
            ties=ties,  # type: ignore[arg-type]
            seed=seed,
            progress=progress,
        )
    breakdowns = {
        "by_class": result.by_class(by_class) if by_class else None,
        "by_category": result.by_category(by_category) if by_category else None,
    }
    weak = weaknesses(result, worst, arrays.get("paths")) if worst else {}
    if out is not None:
        write_text(out, result.to_json() + "\n")
    typer.echo(as_text(result, breakdowns, weak) if not as_json else as_document(result, breakdowns, weak))


def embedded(model: Path, source: str, split: str) -> tuple[dict[str, Any], str]:
    """The arrays of DATA as the model embeds it, and the model's geometry."""
    from lookalike.features import embed
    from lookalike.models import Model
    from lookalike.runs.embeddings import columns

    loaded, dataset = Model.load(model), data.load(source)
    part = None if split == "all" or dataset.splits is None else split
    check(part is None or len(dataset.where(split=part)) > 0, f"{dataset.name} has no split '{part}': give --split all")
    images = readable_images(dataset, part)
    with bar("embedding") as progress:
        return columns(embed(loaded, images, progress), images), loaded.geometry


def read(file: Path) -> dict[str, Any]:
    from lookalike.runs.embeddings import SETS, read_embeddings

    return dict(read_embeddings(file, (*ARRAYS, *UNMEASURED, *SETS)))


def several_labels(arrays: dict[str, Any]) -> tuple[Any, Any]:
    """The labels of queries and gallery; as sets, where the file has them."""
    from lookalike.runs.embeddings import label_sets

    labels, gallery = label_sets(arrays)
    return (arrays["labels"], arrays.get("gallery_labels")) if labels is None else (labels, gallery)


def ignored(arrays: Mapping[str, Any]) -> Any:
    own, other = arrays.get("ignore"), arrays.get("gallery_ignore")
    check(other is None or own is not None, "gallery_ignore needs ignore: add the groups of the queries")
    return own if other is None else (own, other)


def weaknesses(result: Result, count: int, paths: Any = None) -> dict[str, list[Any]]:
    """The worst queries as row, label, value and, where it is known, path; the most confused classes."""
    metric = next(name for name in ("map@r", "map", *result.per_query) if name in result.per_query)
    queries = [[*query, *([] if paths is None else [str(paths[query[0]])])] for query in result.worst(metric, count)]
    if "recall@1" not in result.per_query:
        return {"worst": queries}
    return {"worst": queries, "confused": [list(pair) for pair in result.confused(count)]}


def as_document(result: Result, breakdowns: Mapping[str, Any], weak: Mapping[str, Any]) -> str:
    content: dict[str, Any] = {
        "metrics": dict(result),
        "facts": {k: v for k, v in result.facts.items() if k != "confused"},
    }
    for name, parts in breakdowns.items():
        if parts is not None:
            content[name] = [
                {"name": label, "value": part.value, "queries": part.queries} for label, part in parts.items()
            ]
    content |= weak
    curves = {name: {axis: list(points) for axis, points in curve.items()} for name, curve in result.curves.items()}
    return json.dumps(content | ({"curves": curves} if curves else {}), indent=2, default=str)


def as_text(
    result: Result, breakdowns: Mapping[str, Mapping[Hashable, Share] | None], weak: Mapping[str, list[Any]]
) -> str:
    lines = [str(result)]
    for title, parts in breakdowns.items():
        if parts is not None:
            lines += ["", f"{title.replace('_', ' ')}, the weakest first"]
            ranked = sorted(parts.items(), key=lambda item: item[1].value)
            lines += [f"{part.value:.4f}  {label}  ({part.queries:,} queries)" for label, part in ranked]
    if "worst" in weak:
        lines += ["", "worst queries"]
        for row, label, value, *path in weak["worst"]:
            lines.append(f"{value:.4f}  {path[0] if path else f'row {row}'}  [{label}]")
    if "confused" in weak:
        lines += ["", "most confused classes"]
        lines += [f"{number:7,}  {truth} taken for {taken}" for truth, taken, number in weak["confused"]]
    return "\n".join(lines)
