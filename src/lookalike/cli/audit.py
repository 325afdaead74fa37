"""`lookalike audit DATA`: can a model learn from these images?"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from lookalike import data
from lookalike.cli.arguments import Data
from lookalike.cli.bars import bar
from lookalike.cli.images import read_vectors
from lookalike.data.audit.audit import Audit
from lookalike.data.audit.findings import SHOWN, in_words
from lookalike.errors import check
from lookalike.files import write_text

EXAMPLE = "lookalike audit photos/ --out audit.json"


def run(
    source: Data = None,
    out: Annotated[Path | None, typer.Option("--out", help="Also write all findings to this JSON file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
    embeddings: Annotated[
        Path | None,
        typer.Option(
            "--embeddings", help="Also check the labels, with the vectors of this .npy file (one row per image)."
        ),
    ] = None,
    trained: Annotated[
        Path | None, typer.Option("--run", metavar="RUN", help="Also check the labels with the model of this run.")
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            metavar="TABLE",
            help="Write every label, with its chance of being right, to this .csv; doubtful ones first.",
        ),
    ] = None,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Number of threads that read images.")] = 2,
) -> None:
    """Find broken images, duplicates and wrong labels.

    Lists unreadable files, copies, near duplicates across classes and splits, and classes with one image. --run RUN
    also writes labels that disagree with an image's neighbours to RUN/suspicious_labels.csv (without DATA: those of the
    run's test images). --labels estimates how many labels are wrong, using the model of --run, --embeddings, or a
    network trained on ImageNet; `fit` reads its table and leaves out doubtful labels until you confirm them. Exit code
    0: usable; 1: not usable; 2: data not found.
    """
    from lookalike.cli import audit_labels

    check(source is not None or trained is not None, "give the data to audit, or --run with the folder of a run")
    check(source is not None or out is None, "--out needs the data to audit: --run alone writes to the run's folder")
    check(embeddings is None or trained is None, "give --embeddings or --run, not both")
    check(source is not None or labels is None, "--labels needs the data to audit: give it before --run")
    if source is None:
        audit_labels.audit_test_images(Path(str(trained)), as_json)
        return
    dataset = data.load(source, **_partial(source))
    vectors = read_vectors(embeddings) if embeddings is not None else None
    if trained is not None:
        dataset, vectors = audit_labels.embedded(trained, dataset, threads)
    sentence, figures = "", dict[str, Any]()
    if labels is not None:
        given = audit_labels.readable_vectors(dataset, vectors, threads)
        sentence, figures = audit_labels.write_doubts(*given, labels)
    with bar("checking images") as progress:
        result = data.audit(dataset, embeddings=vectors, threads=threads, progress=progress)
    text = json.dumps(result.as_json() | figures, indent=2, ensure_ascii=False)
    if out is not None:
        write_text(out, text + "\n")
    typer.echo(text if as_json else "\n".join(filter(None, (as_table(result), sentence))))
    if trained is not None:
        audit_labels.save_suspicious(trained, result)
    raise typer.Exit(0 if result.usable else 1)


def _partial(source: str) -> dict[str, Any]:
    """Official sets are audited as they are: a missing image is a finding, not an error."""
    name, equals, _ = source.partition("=")
    kind = name if equals and name in data.MEMBERS else data.layout_of(Path(source).expanduser())
    return {} if kind in ("folder", "table", "arrays", "glyphs") else {"check_counts": False}


def as_table(result: Audit) -> str:
    """The findings, most harmful first, with a few examples of each."""
    lines = [f"{result.name}: {result.images:,} images, {result.classes:,} classes", ""]
    width = max((len(finding.kind) for finding in result.findings), default=0)
    for finding in result.findings:
        lines.append(f"{finding.count:>7,}  {finding.kind:<{width}}  {finding.meaning}")
        lines += [f"{'':>9}{in_words(item)}" for item in finding.items[:SHOWN]]
    if not result.findings:
        lines.append("no problems found")
    sizes = ", ".join(f"{count:,} of {size}" for size, count in result.class_sizes.items() if count)
    lines += ["", f"classes by number of images: {sizes or 'none'}", result.verdict]
    return "\n".join(lines)
