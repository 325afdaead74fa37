"""`python -m papers setting KEY RUN…|STUDY`: recall against batch size, embedding size or any other setting."""

import json
from pathlib import Path
from typing import Annotated

import typer

from lookalike.evaluation.table import aligned
from lookalike.report.compare.text import number

EXAMPLE = "python -m papers setting sampler.batch_size sizes/ --out figures/"


def run(
    key: Annotated[str, typer.Argument(metavar="KEY", help="sampler.batch_size, model.dim, …")],
    folders: Annotated[list[Path], typer.Argument(metavar="RUN…|STUDY", help="Folders of runs, or of a study.")],
    metric: Annotated[str, typer.Option("--metric", help="The metric to show.")] = "recall@1",
    out: Annotated[Path | None, typer.Option("--out", help="Also write setting.svg, .png, .json here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Show a metric at every value of a setting, with intervals, in one line per combination of the other settings."""
    from lookalike.analysis import save
    from papers.multi_similarity.setting_effect import draw_setting_effect, setting_effect

    numbers = setting_effect(folders, key, metric)
    if out is not None:
        save(draw_setting_effect(numbers), numbers, out, "setting")
    if as_json:
        typer.echo(json.dumps(numbers, indent=2, ensure_ascii=False))
        return
    rows = [[key, metric, "± std", "95% interval", "seeds"]]
    for name, points in numbers["lines"].items():
        rows.append([name, "", "", "", ""])
        for point in points:
            ends = point.get("over_seeds") or point.get("over_queries")
            span = f"[{number(metric, ends[0])}, {number(metric, ends[1])}]" if ends else ""
            deviation = number(metric, point["std"]) if "std" in point else ""
            rows.append([f"  {point['value']}", number(metric, point["mean"]), deviation, span, str(point["seeds"])])
    typer.echo("\n".join(aligned(rows)))
