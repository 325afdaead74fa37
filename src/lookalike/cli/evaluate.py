"""`lookalike evaluate FILE.npz`, or `MODEL DATA`: every metric of embeddings."""

import json
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from lookalike import data
from lookalike.cli.bars import bar
from lookalike.errors import UserError, check, unknown
from lookalike.evaluation import Result, evaluate
from lookalike.evaluation.result import Share

EXAMPLE = 'lookalike evaluate test.npz --metrics "recall@1,2,4,8 map@r nmi" --json'

ARRAYS = ("embeddings", "labels", "gallery_embeddings", "gallery_labels", "categories", "ignore", "gallery_ignore")
NAMES = ("paths", "gallery_paths")  # of no consequence here


def run(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.npz|MODEL",
            help=f"Arrays: {', '.join(ARRAYS)}; the first two suffice. Or the folder of a saved model.",
        ),
    ],
    source: Annotated[str | None, typer.Argument(metavar="[DATA]", help="With MODEL: the images to embed.")] = None,
    split: Annotated[
        str, typer.Option("--split", help="With DATA that has splits: which part; 'all' for everything.")
    ] = "test",
    metrics: Annotated[str, typer.Option("--metrics", help="Names such as 'recall@1,10 map@r nmi'.")] = "",
    normalise: Annotated[
        str, typer.Option("--normalise", help="sphere, ball or none. Default: as the model says, else sphere.")
    ] = "",
    ties: Annotated[str, typer.Option("--ties", help="pessimistic, optimistic or expected.")] = "pessimistic",
    seed: Annotated[int, typer.Option("--seed", help="Of the k-means clustering.")] = 0,
    by_class: Annotated[str, typer.Option("--by-class", metavar="METRIC", help="Also this metric per class.")] = "",
    by_category: Annotated[
        str, typer.Option("--by-category", metavar="METRIC", help="Also this metric per category.")
    ] = "",
    worst: Annotated[int, typer.Option("--worst", min=0, help="Also so many worst queries and confused classes.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", help="Also write the whole result to this JSON file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Measure retrieval, clustering and geometry of embeddings, exactly.

    Without gallery arrays every embedding is a query and the others are its gallery. Items whose `gallery_ignore`
    equals the query's `ignore` (the same camera, say) are hidden from it.
    """
    arrays, natural = (read(file), "sphere") if source is None else embedded(file, source, split)
    with bar("ranking") as progress:
        result = evaluate(
            arrays["embeddings"], arrays["labels"],
            gallery=arrays.get("gallery_embeddings"), gallery_labels=arrays.get("gallery_labels"),
            categories=arrays.get("categories"), ignore=ignored(arrays),
            metrics=metrics or None, normalise=normalise or natural, ties=ties, seed=seed, progress=progress,  # type: ignore[arg-type]
        )  # fmt: skip
    breakdowns = {
        "by_class": result.by_class(by_class) if by_class else None,
        "by_category": result.by_category(by_category) if by_category else None,
    }
    weak = weaknesses(result, worst) if worst else {}
    if out is not None:
        try:
            out.write_text(result.to_json() + "\n", encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot write {out} ({error.strerror}): give another --out") from None
    typer.echo(as_text(result, breakdowns, weak) if not as_json else as_document(result, breakdowns, weak))


def embedded(model: Path, source: str, split: str) -> tuple[dict[str, Any], str]:
    """The arrays of DATA as the model sees it, and the model's geometry."""
    from lookalike.features import embed
    from lookalike.models import Model
    from lookalike.runs.embeddings import columns

    loaded, dataset = Model.load(model), data.load(source)
    chosen = dataset if split == "all" or dataset.splits is None else dataset.where(split=split)
    with bar("reading images") as progress:
        chosen = data.readable(chosen, progress=progress)
    check(len(chosen) > 0, f"{dataset.name} has no readable images in '{split}': give --split all")
    with bar("embedding") as progress:
        return columns(embed(loaded, chosen, progress), chosen), loaded.geometry


def read(file: Path) -> dict[str, Any]:
    import numpy as np

    try:
        with np.load(file, allow_pickle=False) as content:
            arrays = dict(content)
    except (OSError, ValueError) as error:
        raise UserError(f"'{file}' cannot be read as .npz ({error}): write it with numpy.savez") from None
    for name in arrays:
        if name not in (*ARRAYS, *NAMES):
            raise unknown("array", name, ARRAYS)
    for name in ("embeddings", "labels"):
        check(name in arrays, f"'{file}' has no array '{name}': it holds {', '.join(arrays) or 'none'}")
    return arrays


def ignored(arrays: Mapping[str, Any]) -> Any:
    own, other = arrays.get("ignore"), arrays.get("gallery_ignore")
    check(other is None or own is not None, "gallery_ignore needs ignore, the groups of the queries")
    return own if other is None else (own, other)


def weaknesses(result: Result, count: int) -> dict[str, list[Any]]:
    metric = next(name for name in ("map@r", "map", *result.per_query) if name in result.per_query)
    found: dict[str, list[Any]] = {"worst": [list(query) for query in result.worst(metric, count)]}
    if "recall@1" in result.per_query:
        found["confused"] = [list(pair) for pair in result.confused(count)]
    return found


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
            lines += [f"{100 * part.value:7.2f}  {label}  ({part.queries:,} queries)" for label, part in ranked]
    if "worst" in weak:
        lines += ["", "worst queries"]
        lines += [f"{100 * value:7.2f}  row {row}  [{label}]" for row, label, value in weak["worst"]]
    if "confused" in weak:
        lines += ["", "most confused classes"]
        lines += [f"{number:7,}  {truth} taken for {taken}" for truth, taken, number in weak["confused"]]
    return "\n".join(lines)
