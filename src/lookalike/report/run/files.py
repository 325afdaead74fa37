"""Every figure and every table of the page as files in the folder `figures`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from lookalike.report.charts.drawing import Pixels
from lookalike.report.charts.files import save, save_charts, save_json
from lookalike.report.run import queries, tiles
from lookalike.report.run.confusions import ConfusedPair
from lookalike.report.run.content import Content


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
