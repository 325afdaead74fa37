"""`lookalike embed MODEL DATA`: images as vectors, by one process, several, or a cluster."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lookalike import data
from lookalike import workers as pool
from lookalike.cli import embed_shards
from lookalike.cli.allocator import keep_memory
from lookalike.cli.arguments import On, Part, Workers
from lookalike.cli.bars import bar
from lookalike.cli.images import readable_images
from lookalike.errors import UserError, check

EXAMPLE = "lookalike embed run/model photos/ --out photos.npz"


ModelFolder = Annotated[
    Path | None, typer.Argument(metavar="MODEL", help="A saved model, such as run/model, or hf:OWNER/NAME.")
]
Images = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="Class folders, a table, a name or name=folder; or unlabelled: a flat folder, one file, '*.jpg'.",
    ),
]
Out = Annotated[Path, typer.Option("--out", help="The .npz file to write, or the folder of the shards.")]
Split = Annotated[str | None, typer.Option("--split", help="Only train, validation or test.")]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda, mps.")]
BackendName = Annotated[
    str, typer.Option("--backend", help="torch, onnx (about twice as fast on a CPU), or auto: onnx where it agrees.")
]
Shards = Annotated[
    int | None, typer.Option("--shards", help="Write a folder of so many files; what is there is not made again.")
]
Status = Annotated[bool, typer.Option("--status", help="Only say how far the shards in --out are.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")]


def run(
    model: ModelFolder = None,
    source: Images = None,
    out: Out = Path("embeddings.npz"),
    split: Split = None,
    device: Device = "cpu",
    backend: BackendName = "auto",
    shards: Shards = None,
    workers: Workers = 1,
    on: On = None,
    part: Part = None,
    status: Status = False,
    as_json: AsJson = False,
) -> None:
    """Embed all images of DATA.

    The file holds the arrays `embeddings`, `paths` (absolute), `fingerprint` (of the model) and, where the images have
    them, `labels`; `lookalike evaluate` and `lookalike index` read it. With --shards,
    --workers, --on or --part, --out is a folder of shards, which both read as well; the same command makes what is
    missing of it.
    """
    if status:
        return embed_shards.show(out, as_json)
    if model is None or source is None:
        raise UserError("give a model and images, as in: lookalike embed run/model photos/; or ask with --status")
    from lookalike.data.formats.unlabelled import unlabelled
    from lookalike.features.shards import is_shards

    keep_memory()
    who, share = pool.Workers(workers, on, gpu=device.startswith("cuda")), pool.Part.of(part)
    loaded, computed_by = _loaded(model, device if on is None else "cpu", backend)
    dataset = unlabelled(source) or data.load(source)
    if shards is not None or who.elsewhere or part is not None or is_shards(out):
        chosen = dataset if split is None else dataset.where(split=split)
        settings = {"shards": shards, "workers": who, "part": share, "device": device, "backend": computed_by}
        return embed_shards.work(loaded, chosen, out, as_json, **settings)
    check(not as_json, "--json is for shards: leave it out, or give --shards")
    return _embed(loaded, computed_by, readable_images(dataset, split), out)


def _loaded(folder: Path, device: str, backend: str) -> tuple[Any, Any]:
    """The model, and what computes it."""
    from lookalike.models import Model

    model = Model.load(folder, device=device)
    computed_by = model.backend(backend)  # type: ignore[arg-type]
    if computed_by.note:
        typer.echo(computed_by.note, err=True)
    return model, computed_by


def _embed(model: Any, backend: Any, images: Any, out: Path) -> None:
    """All images into one file."""
    from lookalike.data.formats.unlabelled import NO_LABEL
    from lookalike.features import embed
    from lookalike.runs.embeddings import columns, save_arrays

    with bar("embedding") as progress:
        vectors = embed(model, images, progress, backend)
    arrays = columns(vectors, images)
    if images.label_names == NO_LABEL:
        del arrays["labels"]
    save_arrays(out, arrays, fingerprint=model.fingerprint)
    skipped = f"; {len(images.problems):,} unreadable files left out" if images.problems else ""
    typer.echo(f"{len(vectors):,} × {vectors.shape[1]} embeddings in {out}{skipped}")
