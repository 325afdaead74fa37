"""`lookalike embed MODEL DATA`: images as vectors."""

from pathlib import Path
from typing import Annotated

import typer

from lookalike import data
from lookalike.cli.allocator import keep_memory
from lookalike.cli.bars import bar

EXAMPLE = "lookalike embed run/model photos/ --out photos.npz"


def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a saved model, such as run/model.")],
    source: Annotated[str, typer.Argument(metavar="DATA", help="A folder, a table, a name, or name=folder.")],
    out: Annotated[Path, typer.Option("--out", help="The .npz file to write.")] = Path("embeddings.npz"),
    split: Annotated[str | None, typer.Option("--split", help="Only train, validation or test.")] = None,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda, …")] = "cpu",
) -> None:
    """Embed all images of DATA: arrays `embeddings`, `labels` and `paths`, as `lookalike evaluate` reads them."""
    from lookalike.features import embed
    from lookalike.models import Model
    from lookalike.runs.embeddings import save_embeddings

    keep_memory()
    loaded = Model.load(model, device=device)
    dataset = data.load(source)
    chosen = dataset if split is None else dataset.where(split=split)
    with bar("reading images") as progress:
        chosen = data.readable(chosen, progress=progress)
    with bar("embedding") as progress:
        vectors = embed(loaded, chosen, progress)
    save_embeddings(out, vectors, chosen)
    left = f"; {len(chosen.problems):,} unreadable files left out" if chosen.problems else ""
    typer.echo(f"{len(vectors):,} × {vectors.shape[1]} embeddings in {out}{left}")
