"""`lookalike embed --shards`: the shards of a data set on the terminal, and how far they are."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lookalike.cli.bars import bar
from lookalike.cli.interrupt import stopping
from lookalike.cli.running import STOPPED

if TYPE_CHECKING:
    from lookalike.features.shard_status import Status

SHOWN = 20  # images that could not be read


def work(model: Any, dataset: Any, out: Path, as_json: bool, **settings: Any) -> None:
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
        return show(out, as_json)
    missing, left = sum(1 for _ in begun.unreadable()), begun.plan.shards - len(begun.finished())
    skipped = f"; {missing:,} unreadable files left out" if missing else ""
    further = (
        f"{left:,} are left for other parts" if left else f"Search them with: lookalike index MODEL {out} --out INDEX"
    )
    typer.echo(f"{begun.plan.images:,} images in {begun.plan.shards:,} shards in {out}{skipped}. {further}")
    return None


def show(out: Path, as_json: bool) -> None:
    """How far the shards are."""
    from lookalike.features import Shards, status

    state = status(Shards.open(out))
    if as_json:
        content = asdict(state) | {"seconds_left": state.seconds_left, "complete": state.finished == state.shards}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    typer.echo("\n".join(_lines(state)))


def _lines(state: "Status") -> list[str]:
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
