"""`lookalike search INDEX IMAGE…`: what looks like this?"""

import json
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

import typer

from lookalike.cli.allocator import keep_memory
from lookalike.errors import UserError, check
from lookalike.files import printable

EXAMPLE = "lookalike search shop.index photo.jpg --k 5 --page hits.html"


def run(
    place: Annotated[str, typer.Argument(metavar="INDEX", help="A folder or postgresql:// address.")],
    queries: Annotated[list[str] | None, typer.Argument(metavar="IMAGE", help="Image files, or ids of items.")] = None,
    k: Annotated[int, typer.Option("--k", min=1, help="Number of items to show for each query.")] = 10,
    where: Annotated[
        list[str] | None, typer.Option("--where", help="Keep only items that meet this condition: brand=x, 'price<20'.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group", help="Answer with things by this column, each with its best photos; `id`: with photos."
        ),
    ] = None,
    box: Annotated[
        str | None, typer.Option("--box", help="Search with this part of the image only: x,y,width,height in pixels.")
    ] = None,
    like: Annotated[
        list[str] | None, typer.Option("--like", help="Another example of what you are looking for.")
    ] = None,
    unlike: Annotated[
        list[str] | None, typer.Option("--unlike", help="An example of what you are not looking for.")
    ] = None,
    page: Annotated[Path | None, typer.Option("--page", help="Also write an HTML page with the pictures.")] = None,
    first: Annotated[
        bool, typer.Option("--first", help="Search with the first item of the index (to try it out).")
    ] = False,
    why: Annotated[
        bool, typer.Option("--why", help="Say which parts of both pictures make them similar; --page shows them.")
    ] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Do not use what calibration switched on.")] = False,
    complete: Annotated[bool, typer.Option("--complete", help="Fail if a shard does not answer.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Find the items most similar to an image.

    A calibrated index also says how far to believe the answer.
    """
    from lookalike.search import Index

    keep_memory()
    index = Index.open(place, complete)
    names = [*(queries or []), *([next(iter(index.store.listed())).id] if first and len(index) else [])]
    check(bool(names) or bool(like), "give an image or the id of an item to search for")
    corners = None if box is None else _box(box)
    examples = [[*names, *(like or [])]] if like or unlike else [[name] for name in names]
    answers = [
        index.search(None, k, where=where, group=group, box=corners, like=some, unlike=unlike or (), plain=plain)
        for some in examples
    ]
    names = [", ".join(some) for some in examples]
    reasons = [[_reason(answer, hit) for hit in answer.hits] if why else [] for answer in answers]
    if page is not None:
        _write_page(index, page, examples, corners, answers, reasons)
    if as_json:
        typer.echo(
            json.dumps(
                [_as_json(name, answer, own) for name, answer, own in zip(names, answers, reasons, strict=True)],
                ensure_ascii=False,
                indent=2,
            )
        )
        return
    for name, answer, own in zip(names, answers, reasons, strict=True):
        typer.echo(_as_table(index, name, answer, own))
    every = not any(answer.missing for answer in answers)  # else nobody knows how many items there are
    if every and (stale := index.stale) is not None:
        typer.echo(f"calibrate again: {stale}")
    if page is not None:
        typer.echo(f"page    {page}")


def _reason(answer: Any, hit: Any) -> Any:
    """Why a hit was found; in words, why nobody can say: its photo is gone, say, and the other hits' are not."""
    from lookalike.search.pictures import PictureError

    try:
        return answer.why(hit)
    except PictureError as error:
        return str(error)


def _box(text: str) -> tuple[int, int, int, int]:
    try:
        x, y, width, height = (int(part) for part in text.split(","))
    except ValueError:
        raise UserError(f"--box is x,y,width,height in pixels, such as 10,20,100,80, not '{text}'") from None
    return x, y, width, height


def _as_json(name: str, answer: Any, reasons: list[Any]) -> dict[str, Any]:
    hits = [
        {
            "id": hit.id,
            "label": hit.label,
            "similarity": hit.similarity,
            "path": _shown(hit.path),
            "columns": dict(hit.item.columns),
        }
        | ({} if not hit.photos else {"thing": hit.thing, "photos": _photos(hit)})
        | _reason_as_json(why)
        for hit, why in zip_longest(answer.hits, reasons)
    ]
    names = ("match", "label", "second", "chance", "verdict", "words", "meaning")
    said = {name: getattr(answer, name) for name in names}
    return {"query": printable(name)} | said | {"hits": hits, "missing": list(answer.missing)}


def _reason_as_json(why: Any) -> dict[str, Any]:
    if isinstance(why, str):
        return {"why": None, "problem": why}
    return {} if why is None else {"why": why.as_json()}


def _as_table(index: Any, name: str, answer: Any, reasons: list[Any]) -> str:
    from lookalike.evaluation.table import aligned
    from lookalike.search.things import text_of
    from lookalike.search.wording import in_brief

    lines = [_title(index, name)]
    lines += [f"{shard} does not answer: its items are missing below" for shard in answer.missing]
    if answer.verdict == "uncalibrated":
        lines.append(
            f"uncalibrated: {answer.meaning or 'run lookalike calibrate to measure how far to trust an answer'}"
        )
    else:
        lines.append(in_brief(answer))
    things = any(hit.photos for hit in answer.hits)
    rows = [["similarity", *(["thing"] if things else []), "label", "item"]]
    for hit in answer.hits:
        thing = [text_of(hit.thing) or ""] if things else []
        rows.append([f"{hit.similarity:.4f}", *thing, hit.label or "", _shown(hit.path) or hit.id])
        rows += [["", *([""] if things else []), "", _shown(photo.path) or photo.id] for photo in hit.photos[1:]]
    found = aligned(rows, range(1, len(rows[0]))) if answer.hits else ["nothing in the index answers this search"]
    said = [f"{place}. {why if isinstance(why, str) else why.words}" for place, why in enumerate(reasons, start=1)]
    return "\n".join([*lines, *found, *said, ""])


def _photos(hit: Any) -> list[dict[str, Any]]:
    return [{"id": photo.id, "similarity": photo.similarity, "path": _shown(photo.path)} for photo in hit.photos]


def _title(index: Any, name: str) -> str:
    """A query's name; that of an item with its label."""
    items = [] if Path(name).is_file() else index.store.items([name])
    shown = printable(name)
    return f"{shown} ({items[0].label})" if items and items[0].label is not None else shown


def _shown(path: str | None) -> str | None:
    return None if path is None else printable(path)


def _write_page(
    index: Any,
    file: Path,
    examples: list[list[str]],
    box: tuple[int, int, int, int] | None,
    answers: list[Any],
    reasons: list[list[Any]],
) -> None:
    from lookalike import files
    from lookalike.search.pages import Lit, search_page
    from lookalike.search.pictures import as_jpeg, lit, thumbnail
    from lookalike.search.queries import pixels_of

    def picture(name: str, part: tuple[int, int, int, int] | None) -> bytes | None:
        if Path(name).is_file():
            return as_jpeg(pixels_of(name, part).permute(1, 2, 0).numpy())
        return thumbnail(index.store, index.store.items([name])[0])

    def explained(name: str, answer: Any, whys: list[Any]) -> list[Lit | str]:
        pixels = cache(lambda: pixels_of(name) if Path(name).is_file() else index.picture(name))

        def drawn(hit: Any, why: Any) -> Lit:
            pairs = ((pixels(), why.query), (index.picture(hit.id), why.hit))
            query, found = (lit(shown.permute(1, 2, 0).numpy(), heat) for shown, heat in pairs)
            return Lit(query, found, why.words)

        return [why if isinstance(why, str) else drawn(hit, why) for hit, why in zip(answer.hits, whys, strict=True)]

    rows = [
        (", ".join(some), [picture(name, box if len(some) == 1 else None) for name in some], answer)
        for some, answer in zip(examples, answers, strict=True)
    ]
    why = {
        place: explained(some[0], answer, whys)
        for place, (some, answer, whys) in enumerate(zip(examples, answers, reasons, strict=True))
        if whys
    }
    files.write_text(file, search_page(index, rows, why))
