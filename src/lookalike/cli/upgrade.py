"""`lookalike upgrade INDEX NEW_MODEL`: another model, without embedding everything first."""

import json
from contextlib import ExitStack
from dataclasses import asdict
from typing import Annotated

import typer

from lookalike.cli.allocator import keep_memory
from lookalike.cli.bars import bar
from lookalike.errors import UserError

EXAMPLE = "lookalike upgrade shop.index run2/model"


def run(
    place: Annotated[str, typer.Argument(metavar="INDEX", help="A folder or postgresql:// address.")],
    model: Annotated[str, typer.Argument(metavar="NEW_MODEL", help="A saved model, such as run2/model.")],
    least: Annotated[
        float, typer.Option("--least", help="Share of the new model's recall@10 that the map must keep.")
    ] = 0.9,
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample", min=50, help="Number of items to learn the map from. Default: 5%, between 500 and 5,000."
        ),
    ] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Also remove items whose files are gone.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
) -> None:
    """Move an index to a new model without a pause.

    The new model answers as soon as a sample of the items is embedded: a map from old to new vectors, learnt from the
    sample, stands in for the rest. The rest is then embedded, items that searches find first. You can stop at any time;
    the same command continues.
    """
    from lookalike.search import Index
    from lookalike.search.upgrading.upgrade import upgrade

    keep_memory()
    index = Index.open(place)
    try:
        with ExitStack() as shown:
            parts = lambda name: shown.enter_context(bar(name))  # noqa: E731
            result = upgrade(index, model, least=least, sample=sample, drop_missing=prune, stage=parts)
        index.ready()
    except KeyboardInterrupt:
        raise UserError("stopped; what is embedded stays, the same command continues") from None
    for name in result.gone:
        typer.echo(f"{'dropped' if prune else 'mapped'}, its picture is gone: {name}", err=True)
    if as_json:
        typer.echo(json.dumps(asdict(result), indent=2, ensure_ascii=False))
        return
    if result.choice is not None:
        choice = result.choice
        kinds = ", ".join(f"{kind} {recall:.3f}" for kind, recall in choice.mapped.items())
        typer.echo(
            f"On a sample of {choice.sample:,} items recall@10 was {choice.old:.3f} by the old model, {choice.new:.3f} "
            f"by the new one, and with items mapped {kinds}: {choice.kind} kept {choice.share:.1%} until now."
        )
    typer.echo(
        f"{len(index):,} items in {index.shown} answer by the new model: generation {index.identity.generation}."
    )
    if index.calibration is None:
        typer.echo("Its answers are not calibrated: run lookalike calibrate.")
