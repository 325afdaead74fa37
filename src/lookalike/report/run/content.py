"""Everything the page says, before any of it is drawn."""

from dataclasses import dataclass
from typing import Any

from lookalike.report.charts.chart import Chart
from lookalike.report.run import class_table, confusions, embedding_map, strips
from lookalike.report.run import headline as summary
from lookalike.report.run.figures.pairs import precision_recall_chart, roc_chart, similarity_chart
from lookalike.report.run.figures.recall import recall_chart
from lookalike.report.run.figures.results import results_chart
from lookalike.report.run.figures.spectrum import spectrum_chart
from lookalike.report.run.figures.training import training_charts
from lookalike.report.run.measures import Measured
from lookalike.report.run.reading import Run


@dataclass(frozen=True)
class Content:
    run: Run
    measured: Measured
    results: list[dict[str, Any]]
    classes: list[dict[str, Any]]
    categories: list[dict[str, Any]]
    strips: list[strips.Strip]
    confused: list[confusions.Confused]
    map: embedding_map.Map
    charts: dict[str, Chart]

    def pictured(self) -> list[int]:
        """The rows whose pictures stand on the page; those of the map are on a sheet of their own."""
        queries = [row for strip in self.strips for row in strip.rows()]
        return queries + [row for pair in self.confused for row in pair.rows()]


def gather(run: Run, measured: Measured) -> Content:
    result, taken = measured.result, confusions.every(measured.sample)
    results = summary.results_of(run, result)
    found = embedding_map.find(run.test, result)
    charts = [
        results_chart(results),
        recall_chart(result, results),
        *training_charts(run),
        similarity_chart(measured.tally, run.test.geometry),
        precision_recall_chart(measured.tally),
        roc_chart(measured.tally),
        embedding_map.chart(found),
        spectrum_chart(measured.singular_values, measured.shape.get("rho")),
    ]
    return Content(
        run=run,
        measured=measured,
        results=results,
        classes=class_table.classes(run.test, result, taken),
        categories=class_table.categories(run.test, result),
        strips=strips.find(run.test, result),
        confused=confusions.find(run.test, measured.sample, taken),
        map=found,
        charts={chart.name: chart for chart in charts if chart is not None},
    )
