"""`lookalike discover PHOTOS --out found.csv`: which photos show the same kind of thing?"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lookalike.cli.bars import bar
from lookalike.cli.grouping import KNOWN, embedded, merged, tell_unreadable, tell_unused
from lookalike.errors import check

if TYPE_CHECKING:
    from lookalike.discover.table import GroupedPhoto

EXAMPLE = "lookalike discover photos/ --out found.csv"


def run(
    source: Annotated[
        str, typer.Argument(metavar="PHOTOS|INDEX", help="Photos (the folders they are in are ignored) or an index.")
    ],
    out: Annotated[
        Path, typer.Option("--out", help="The .csv table to write: path, label, verdict, similarity, nearer.")
    ],
    model: Annotated[
        Path | None, typer.Option("--model", help="A saved model. Default: a network trained on ImageNet.")
    ] = None,
    known: Annotated[
        Path | None,
        typer.Option("--known", metavar="TABLE", help=KNOWN),
    ] = None,
    level: Annotated[
        float | None,
        typer.Option(
            "--level", help="From 0 (few, coarse groups) to 1 (many, fine ones). Default: suggested by the photos."
        ),
    ] = None,
    same: Annotated[
        list[str] | None,
        typer.Option(
            "--same", help="Photos that belong together, a.jpg,b.jpg,c.jpg: use the finest level that joins them."
        ),
    ] = None,
    least: Annotated[int, typer.Option("--least", min=2, help="Smallest new group, in photos.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
) -> None:
    """Group photos without labels by what they show.

    The number of groups need not be known, and a photo that fits nowhere stays in no group. Known classes, from an
    index or --known, stay as they are; other photos join them, form new groups, or stay out.
    """
    from lookalike.discover import table

    check(level is None or not same, "give --level or --same, not both")
    tell_unused(source, known)
    photos = embedded(source, model, known)
    examples = [[photos.place_of(name) for name in group.split(",") if name] for group in same or []]
    groups = merged(photos)
    if level is not None:
        height = groups.level_of(level)
    elif examples:
        height = min(groups.level_of_examples(group) for group in examples)
    else:
        with bar("choosing the level") as progress:
            height = groups.suggested(progress)
    found = groups.at(height, least)
    rows = table.rows_of(photos, found)
    table.write(rows, out)
    tell_unreadable(photos)
    _tell(rows, found.fineness, out, as_json)


def _tell(rows: "list[GroupedPhoto]", level: float, out: Path, as_json: bool) -> None:
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in ("known", "joined", "found")}
    groups = len({row.label for row in rows if row.verdict == "found"})
    apart = len(rows) - sum(counts.values())
    if as_json:
        summary = {"photos": len(rows), "groups": groups, **counts, "apart": apart, "level": level}
        typer.echo(json.dumps(summary | {"file": str(out)}, indent=2))
        return
    typer.echo(f"{len(rows):,} photos: {_words(counts, groups)}{apart:,} apart, at level {level:.2f}: {out}")
    typer.echo("Check a few pairs to know how pure the groups are: lookalike ask " + str(out))


def _words(counts: dict[str, int], groups: int) -> str:
    words = [f"{counts['found']:,} in {groups:,} new groups, "]
    if counts["known"]:
        words = [f"{counts['known']:,} of known classes, {counts['joined']:,} that join them, ", *words]
    return "".join(words)
