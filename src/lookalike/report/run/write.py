"""From a run folder to report.html and figures/: read, measure, choose, fetch pictures, draw."""

from collections.abc import Callable
from pathlib import Path

from lookalike.report.run import pictures
from lookalike.report.run.content import gather
from lookalike.report.run.export import export
from lookalike.report.run.measures import measure
from lookalike.report.run.reading import read
from lookalike.report.run.sections import draw

STAGES = 5
Progress = Callable[[int, int], None]


def write(run: Path | str, images: pictures.Images | None = None, progress: Progress | None = None) -> Path:
    """Write RUN/report.html and RUN/figures/, and say where the page is.

    `images(row)` is the picture (uint8, h × w × 3) of a row of test.npz, gallery rows counted after the queries.
    Without it, pictures come from RUN/thumbnails.npz or from the files that test.npz names; without any, the page
    shows names instead.
    """
    folder = Path(run)
    tell = progress or (lambda *_: None)
    source = read(folder)
    measured = measure(source.test)
    tell(1, STAGES)
    content = gather(source, measured)
    tell(2, STAGES)
    found = pictures.collect(source, content.pictured() + content.map.rows, images)
    tell(3, STAGES)
    export(content, found, folder / "figures")
    tell(4, STAGES)
    target = folder / "report.html"
    target.write_text(draw(content, found), encoding="utf-8")
    tell(STAGES, STAGES)
    return target
