"""`lookalike embed MODEL DATA`: images as vectors, by one process or by many."""

from pathlib import Path
from typing import Annotated

import typer

from lookalike import data
from lookalike.cli import embed_shards
from lookalike.cli.allocator import keep_memory
from lookalike.cli.bars import bar
from lookalike.cli.images import readable_images
from lookalike.errors import UserError, check

EXAMPLE = "lookalike embed run/model photos/ --out photos.npz"


def run(
    model: Annotated[
        Path | None, typer.Argument(metavar="MODEL", help="The folder of a saved model, such as run/model.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="Class folders, a table, a name or name=folder; or unlabelled: a flat folder, one file, '*.jpg'.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="The .npz file to write, or the folder of the shards.")] = Path(
        "embeddings.npz"
    ),
    split: Annotated[str | None, typer.Option("--split", help="Only train, validation or test.")] = None,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda, mps.")] = "cpu",
    backend: Annotated[
        str,
        typer.Option("--backend", help="torch, onnx (about twice as fast on a CPU), or auto: onnx where it agrees."),
    ] = "auto",
    shards: Annotated[
        int | None, typer.Option("--shards", help="Divide the work: start the same command as often as you like.")
    ] = None,
    lease: Annotated[
        float | None,
        typer.Option("--lease", help="A worker loses its shard after this many seconds without a sign of life [300]."),
    ] = None,
    status: Annotated[bool, typer.Option("--status", help="Only say how far the workers on --out have got.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
) -> None:
    """Embed all images of DATA.

    The file holds the arrays `embeddings`, `paths` (absolute), `fingerprint` (of the model) and, where the images have
    them, `labels`; `lookalike evaluate` and `lookalike index` read it. With --shards, --out is a folder that any number
    of workers on any machines fill together, and that both read as well.
    """
    from lookalike.data.formats.unlabelled import NO_LABEL, unlabelled
    from lookalike.features import embed
    from lookalike.features.shards import is_shards
    from lookalike.models import Model
    from lookalike.runs.embeddings import columns, save_arrays

    if status:
        return embed_shards.show(out, as_json)
    if model is None or source is None:
        raise UserError("give a model and images, as in: lookalike embed run/model photos/; or ask with --status")
    keep_memory()
    loaded = Model.load(model, device=device)
    computed_by = loaded.backend(backend)  # type: ignore[arg-type]
    if computed_by.note:
        typer.echo(computed_by.note, err=True)
    dataset = unlabelled(source) or data.load(source)
    if shards is not None or is_shards(out):
        part = dataset if split is None else dataset.where(split=split)
        return embed_shards.work(loaded, part, out, shards, computed_by, lease, as_json)
    check(not as_json, "--json is for shards: leave it out, or give --shards")
    check(lease is None, "--lease is for shards: leave it out, or give --shards")
    images = readable_images(dataset, split)
    with bar("embedding") as progress:
        vectors = embed(loaded, images, progress, computed_by)
    arrays = columns(vectors, images)
    if images.label_names == NO_LABEL:
        del arrays["labels"]
    save_arrays(out, arrays, fingerprint=loaded.fingerprint)
    skipped = f"; {len(images.problems):,} unreadable files left out" if images.problems else ""
    typer.echo(f"{len(vectors):,} × {vectors.shape[1]} embeddings in {out}{skipped}")
    return None
