"""From a run's folder to report.html and figures/: read, measure, choose, fetch pictures, draw."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from lookalike.evaluation import Result
from lookalike.files import write_text
from lookalike.progress import Progress
from lookalike.report.charts.drawing import Pixels
from lookalike.report.charts.files import save, save_charts, save_json
from lookalike.report.run import queries, tiles
from lookalike.report.run.confusions import ConfusedPair
from lookalike.report.run.content import Content, gather
from lookalike.report.run.measures import measure
from lookalike.report.run.record import read
from lookalike.report.run.sections import draw
from lookalike.report.run.thumbnails import Images, thumbnails

STAGES = 5


def write(
    run: Path | str,
    images: Images | None = None,
    progress: Progress | None = None,
    *,
    result: Result | None = None,
    png: bool = False,
    photos: Path | None = None,
) -> Path:
    """Write report.html and figures/ into the folder of a `run`, and return where the page is.

    `images(row)` is the picture (uint8, h × w × 3) of a row of test.npz, gallery rows counted after the queries.
    Without it, pictures come from RUN/thumbnails.npz or from the files that test.npz names, where these are below the
    folder of the run or below `photos`; without any, the page shows names instead. `result` is what `evaluate` returned
    for the queries of test.npz: then they are not ranked again. With `png`, every figure is also saved as PNG.
    `progress(done, total)` is called.
    """
    advance = progress or (lambda *_: None)
    record = read(Path(run))
    measures = measure(record.test, result)
    advance(1, STAGES)
    content = gather(record, measures)
    advance(2, STAGES)
    pictures = thumbnails(record, [*content.pictured(), *content.map.rows], images, photos)
    advance(3, STAGES)
    save_figures(content, pictures, record.folder.figures, png)
    advance(4, STAGES)
    write_text(record.folder.report, draw(content, pictures))
    advance(STAGES, STAGES)
    return record.folder.report


def save_figures(content: Content, pictures: Mapping[int, Pixels], folder: Path, png: bool) -> None:
    save_charts(content.charts.values(), folder, png)
    save_json(content.classes, folder / "classes.json")
    save_json(content.categories, folder / "categories.json")
    save_json(content.labels.table, folder / "labels.json")
    save_json(content.measures.shape, folder / "shape.json")

    def save_tiles(name: str, title: str, lines: Sequence[queries.Strip] | Sequence[ConfusedPair]) -> None:
        drawing = tiles.drawing(title, [line.tiles() for line in lines], pictures)
        save(drawing, [line.numbers() for line in lines], folder / name, png)

    for kind, title in queries.TITLES.items():
        save_tiles(f"queries_{kind}", title, [strip for strip in content.strips if strip.kind == kind])
    save_tiles("confusions", "Most confused classes, side by side", content.confused)
