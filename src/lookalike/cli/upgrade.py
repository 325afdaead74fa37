"""`lookalike upgrade INDEX NEW_MODEL`: another model, without embedding everything first."""

import json
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lookalike.cli.allocator import keep_memory
from lookalike.cli.bars import bar
from lookalike.errors import UserError

if TYPE_CHECKING:
    from lookalike.search.upgrading.maps import MapChoice

EXAMPLE = "lookalike upgrade shop.index run2/model"


def run(
    place: Annotated[str, typer.Argument(metavar="INDEX", help="A folder or postgresql:// address.")],
    model: Annotated[str, typer.Argument(metavar="NEW_MODEL", help="A saved model, such as run2/model.")],
    least: Annotated[
        float | None,
        typer.Option("--least", help="Share of the new model's recall@10 that the map must keep. Default: 0.9."),
    ] = None,
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
    from lookalike.search.upgrading.mapping import LEAST
    from lookalike.search.upgrading.upgrade import upgrade

    keep_memory()
    index = Index.open(place)
    given: dict[str, Any] = {"least": LEAST if least is None else least, "sample": sample, "drop_missing": prune}

    def accepted(choice: "MapChoice", before: bool) -> None:
        typer.echo(_recalls(choice), err=True)
        if before and (least, sample) != (None, None):
            typer.echo("The map was accepted before: --least and --sample change nothing now.", err=True)

    try:
        with ExitStack() as shown:
            parts = lambda name: shown.enter_context(bar(name))  # noqa: E731
            result = upgrade(index, model, **given, stage=parts, accepted=accepted)
        index.ready()
    except KeyboardInterrupt:
        raise UserError("stopped; what is embedded stays, the same command continues") from None
    for name in result.gone:
        typer.echo(f"{'removed' if prune else 'still mapped'}: {name}, its picture can no longer be read", err=True)
    if as_json:
        typer.echo(json.dumps(asdict(result), indent=2, ensure_ascii=False))
        return
    typer.echo(
        f"{len(index):,} items in {index.shown} answer by the new model: generation {index.identity.generation}."
    )
    if index.calibration is None:
        typer.echo("Its answers are not calibrated: run lookalike calibrate.")


def _recalls(choice: "MapChoice") -> str:
    """What the sample says of the answers until every item is embedded."""
    mapped = choice.mapped[choice.kind]
    kinds = ", ".join(f"{kind} {recall:.3f}" for kind, recall in choice.mapped.items())
    told = (
        f"The new model answers now. On a sample of {choice.sample:,} items, recall@10 is {choice.old:.3f} by the old "
        f"model, {choice.new:.3f} by the new one, and with items mapped {kinds}. Until all items are embedded, "
        f"{choice.kind} keeps {choice.share:.1%}."
    )
    worse = "\nWarning: that is less than the old model had. Answers are worse until all items are embedded."
    return told + (worse if mapped < choice.old else "")
