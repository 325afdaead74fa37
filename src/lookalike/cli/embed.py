"""`lookalike embed MODEL DATA`: images as vectors, by one process, several, or a cluster."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lookalike import data
from lookalike import workers as pool
from lookalike.cli.allocator import keep_memory
from lookalike.cli.arguments import On, Part, Workers
from lookalike.cli.bars import bar
from lookalike.cli.images import readable_images
from lookalike.cli.interrupt import stopping
from lookalike.cli.running import STOPPED
from lookalike.errors import UserError, check

if TYPE_CHECKING:
    from lookalike.features.shard_status import Status as ShardStatus

EXAMPLE = "lookalike embed run/model photos/ --out photos.npz"
SHOWN = 20  # images that could not be read

ModelFolder = Annotated[
    Path | None, typer.Argument(metavar="MODEL", help="A saved model, such as run/model, or hf:OWNER/NAME.")
]
Images = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="A folder per class, a table, a data set, dataset=folder; or, without labels, a folder, file or '*.jpg'.",
    ),
]
Out = Annotated[Path, typer.Option("--out", help="The .npz file to write, or the folder of the shards.")]
Split = Annotated[str | None, typer.Option("--split", help="Embed only this split: train, validation or test.")]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda or mps.")]
BackendName = Annotated[
    str, typer.Option("--backend", help="torch, onnx (about twice as fast on a CPU), or auto: onnx where it agrees.")
]
Shards = Annotated[
    int | None, typer.Option("--shards", help="Write a folder of this many files; existing ones are kept.")
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
    """Turn images into vectors and save them to a file.

    The file holds the arrays `embeddings`, `paths` (absolute), `fingerprint` (of the model) and, if the images have
    labels, `labels`. With --shards, --workers, --on or --part, the output is a folder of shards instead; run the same
    command again to add missing shards. `lookalike evaluate` and `lookalike index` read both.
    """
    if status:
        return _show(out, as_json)
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
        return _embed_shards(loaded, chosen, out, as_json, **settings)
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


def _embed_shards(model: Any, dataset: Any, out: Path, as_json: bool, **settings: Any) -> None:
    """Make what is missing; Ctrl-C and a terminate signal give up the shards in hand."""
    from lookalike.features import embed_shards

    def unreadable(problems: list[tuple[str, str]]) -> None:
        for name, reason in problems:
            typer.echo(f"unreadable: {name}: {reason}", err=True)

    try:
        with stopping(), bar("embedding") as progress:
            begun = embed_shards(model, dataset, out, progress=progress, unreadable=unreadable, **settings)
    except KeyboardInterrupt:
        typer.echo("stopped; the shards that are there stay, and the same command continues", err=True)
        raise typer.Exit(STOPPED) from None
    if as_json:
        return _show(out, as_json)
    missing, left = sum(1 for _ in begun.unreadable()), begun.plan.shards - len(begun.finished())
    skipped = f"; {missing:,} unreadable files left out" if missing else ""
    further = (
        f"{left:,} are left for other parts" if left else f"Search them with: lookalike index MODEL {out} --out INDEX"
    )
    typer.echo(f"{begun.plan.images:,} images in {begun.plan.shards:,} shards in {out}{skipped}. {further}")
    return None


def _show(out: Path, as_json: bool) -> None:
    """How far the shards are."""
    from lookalike.features import Shards, status

    state = status(Shards.open(out))
    if as_json:
        content = asdict(state) | {"seconds_left": state.seconds_left, "complete": state.finished == state.shards}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    typer.echo("\n".join(_lines(state)))


def _lines(state: "ShardStatus") -> list[str]:
    lines = [f"{state.done:,} of {state.images:,} images, {state.finished:,} of {state.shards:,} shards"]
    if state.seconds_left:
        lines.append(f"at the last {state.per_second:,.0f} images a second, {_duration(state.seconds_left)} are left")
    lines += [f"unreadable: {name}: {reason} (shard {shard:06d})" for shard, name, reason in state.unreadable[:SHOWN]]
    rest = len(state.unreadable) - SHOWN
    return [*lines, f"and {rest:,} more unreadable images: --json lists them all"] if rest > 0 else lines


def _duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> _duration(59), _duration(610), _duration(50_000)
    ('59 s', '10 min', '13 h 53 min')
    """
    minutes, hours = divmod(round(seconds), 60)[0], round(seconds) // 3600
    return f"{seconds:.0f} s" if minutes < 1 else f"{minutes} min" if hours < 1 else f"{hours} h {minutes % 60} min"
