"""What `fit` and `train` share: a run on the terminal, stopped politely, with its numbers at the end."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import typer

from lookalike.cli.allocator import keep_memory
from lookalike.cli.interrupt import stop_requests
from lookalike.cli.live import live
from lookalike.evaluation.table import aligned

STOPPED = 130  # as shells report Ctrl-C


def run(out: Path, as_json: bool, tensorboard: bool, track: str | None, **settings: Any) -> None:
    """`fit` with everything a terminal needs around it."""
    from lookalike.fit import fit
    from lookalike.training import StoppedError, TensorBoard, Tracker, to_all
    from lookalike.training.distributed import joined, own_folder

    keep_memory()
    with stop_requests() as stop, joined() as ranks, own_folder(out, settings["resume"]) as place:
        try:
            with live(ranks.first) as tell:
                boards = [TensorBoard(place / "tensorboard")] if tensorboard else []
                trackers = [Tracker(track, out)] if track is not None and ranks.first else []
                fit(out=place, tell=to_all(tell, *boards, *trackers), stop=stop, **settings)
        except StoppedError as stopped:
            if ranks.first:
                typer.echo(f"{stopped}; everything is saved. Continue with:\n  {resuming()}", err=True)
            raise typer.Exit(STOPPED) from None
    if not ranks.first:
        return
    content = json.loads((out / "result.json").read_text(encoding="utf-8"))
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False) if as_json else as_table(content, out))


def resuming() -> str:
    """The command that continues this run."""
    words = [word for word in sys.argv[1:] if word not in ("--resume", "--fresh")]
    return shlex.join(["lookalike", *words, "--resume"])


def in_words(verdict: dict[str, Any]) -> list[str]:
    """The verdict on top: how good the model is, in words first, what was delivered, what to beware of, what helps."""
    if not verdict:
        return []
    lines = [*verdict["sentences"], f"delivered: {verdict['delivered']}"]
    lines += [f"warning: {text}" for text in verdict["warnings"]]
    return [*lines, *(f"next: {text}" for text in verdict["next"]), ""]


def as_table(content: dict[str, Any], out: Path) -> str:
    """The model and its baselines on unseen classes."""
    sizes = content["data"]
    rows = [["", "recall@1", "95% interval", "map@r", "95% interval"]]
    for entry in content["results"]:
        row = [entry["name"]]
        for name in ("recall@1", "map@r"):
            interval = entry["intervals"].get(name)
            deviation = f" ± {entry['std'][name]:.3f}" if "std" in entry and name in entry["std"] else ""
            row.append(f"{entry['metrics'][name]:.3f}{deviation}" if name in entry["metrics"] else "")
            row.append(f"[{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "")
        rows.append(row)
    lines = [
        *in_words(content.get("verdict") or {}),
        f"on {sizes['test_images']:,} images of {sizes['test_classes']:,} classes never seen in training",
        "",
    ]
    runs = [run["folder"] for run in content.get("runs", [])]
    models = f"models  {out / runs[0] / 'model'} and {len(runs) - 1} more" if runs else f"model   {out / 'model'}"
    lines += [*aligned(rows), "", models, f"report  {out / 'report.html'} (its last section explains the terms)"]
    return "\n".join(lines)
