"""`lookalike embed MODEL DATA`: images as vectors."""

from pathlib import Path
from typing import Annotated

import typer

from lookalike import data
from lookalike.cli.allocator import keep_memory
from lookalike.cli.bars import bar
from lookalike.cli.images import readable_images

EXAMPLE = "lookalike embed run/model photos/ --out photos.npz"


def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a saved model, such as run/model.")],
    source: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="Class folders, a table, a name or name=folder; or unlabelled: a flat folder, one file, '*.jpg'.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="The .npz file to write.")] = Path("embeddings.npz"),
    split: Annotated[str | None, typer.Option("--split", help="Only train, validation or test.")] = None,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda, mps.")] = "cpu",
    backend: Annotated[
        str,
        typer.Option("--backend", help="torch, onnx (about twice as fast on a CPU), or auto: onnx where it agrees."),
    ] = "auto",
) -> None:
    """Embed all images of DATA.

    The file holds the arrays `embeddings`, `paths` (absolute), `fingerprint` (of the model) and, where the images have
    them, `labels`; `lookalike evaluate` and `lookalike index` read it.
    """
    from lookalike.data.formats.unlabelled import NO_LABEL, unlabelled
    from lookalike.features import embed
    from lookalike.models import Model
    from lookalike.runs.embeddings import columns, save_arrays

    keep_memory()
    loaded = Model.load(model, device=device)
    computed_by = loaded.backend(backend)  # type: ignore[arg-type]
    if computed_by.note:
        typer.echo(computed_by.note, err=True)
    images = readable_images(unlabelled(source) or data.load(source), split)
    with bar("embedding") as progress:
        vectors = embed(loaded, images, progress, computed_by)
    arrays = columns(vectors, images)
    if images.label_names == NO_LABEL:
        del arrays["labels"]
    save_arrays(out, arrays, fingerprint=loaded.fingerprint)
    skipped = f"; {len(images.problems):,} unreadable files left out" if images.problems else ""
    typer.echo(f"{len(vectors):,} × {vectors.shape[1]} embeddings in {out}{skipped}")
