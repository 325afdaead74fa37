"""`lookalike embed --shards`: one worker of many on the terminal, and how far they are."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lookalike.cli.bars import bar
from lookalike.cli.interrupt import stop_requests
from lookalike.cli.running import STOPPED

if TYPE_CHECKING:
    from lookalike.features.shard_status import Status

SHOWN = 20  # images that could not be read


def work(
    model: Any, dataset: Any, out: Path, shards: int | None, backend: Any, lease: float | None, as_json: bool
) -> None:
    """Work until all shards are there; Ctrl-C and a terminate signal give the current one back."""
    from lookalike.features import embed_shards
    from lookalike.features.claims import LEASE

    def unreadable(problems: list[tuple[str, str]]) -> None:
        for name, reason in problems:
            typer.echo(f"unreadable: {name}: {reason}", err=True)

    with stop_requests() as stop, bar("embedding") as progress:
        begun = embed_shards(
            model,
            dataset,
            out,
            shards,
            backend=backend,
            progress=progress,
            stop=stop,
            unreadable=unreadable,
            lease=LEASE if lease is None else lease,
        )
    if len(begun.finished()) < begun.plan.shards:
        typer.echo("stopped; the shards that are there stay, and the same command continues", err=True)
        raise typer.Exit(STOPPED)
    if as_json:
        return show(out, as_json)
    missing = sum(1 for _ in begun.unreadable())
    skipped = f"; {missing:,} unreadable files left out" if missing else ""
    typer.echo(
        f"{begun.plan.images:,} images in {begun.plan.shards:,} shards in {out}{skipped}. Search them with: "
        f"lookalike index MODEL {out} --out INDEX"
    )
    return None


def show(out: Path, as_json: bool) -> None:
    """How far the workers are."""
    from lookalike.features import Shards, status

    state = status(Shards.open(out))
    if as_json:
        content = asdict(state) | {"seconds_left": state.seconds_left, "complete": state.finished == state.shards}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    typer.echo("\n".join(_lines(state)))


def _lines(state: "Status") -> list[str]:
    lines = [f"{state.done:,} of {state.images:,} images, {state.finished:,} of {state.shards:,} shards"]
    if state.seconds_left is not None:
        lines.append(f"{state.per_second:,.0f} images a second, about {_duration(state.seconds_left)} left")
    for one in state.at_work:
        lines.append(
            f"shard {one.shard:06d}: process {one.process} on {one.host}, {one.images:,} images done, "
            f"last sign of life {one.silent:.0f} s ago"
        )
    if state.finished < state.shards and not state.at_work:
        lines.append("nobody is at work: start a worker with the same command without --status")
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
