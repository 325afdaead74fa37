"""Everything the page of a run says, before any of it is drawn."""

from dataclasses import dataclass
from typing import Any

from lookalike.report.charts.chart import Chart
from lookalike.report.run import class_table, confusions, queries
from lookalike.report.run.embedding_map import EmbeddingMap, chart, embedding_map
from lookalike.report.run.figures import calibration_chart, recall_chart, results_chart, spectrum_chart
from lookalike.report.run.headline import results_of
from lookalike.report.run.labels import LabelCheck, check_labels
from lookalike.report.run.measures import Measures
from lookalike.report.run.pair_figures import precision_recall_chart, roc_chart, similarity_chart
from lookalike.report.run.record import RunRecord
from lookalike.report.run.training_figures import training_charts
from lookalike.report.run.verdict import networks_chart


@dataclass(frozen=True)
class Content:
    run: RunRecord
    measures: Measures
    results: list[dict[str, Any]]
    classes: list[dict[str, Any]]
    categories: list[dict[str, Any]]
    strips: list[queries.Strip]
    labels: LabelCheck
    confused: list[confusions.ConfusedPair]
    map: EmbeddingMap
    charts: dict[str, Chart]

    def pictured(self) -> set[int]:
        """The rows whose pictures stand on the page; those of the map are on a sheet of their own."""
        lines = [
            *(strip.tiles() for strip in self.strips),
            *(pair.tiles() for pair in self.confused),
            self.labels.tiles(),
        ]
        return {tile.row for line in lines for tile in line}


def gather(run: RunRecord, measures: Measures) -> Content:
    result, all_confusions = measures.result, confusions.every(measures.sample)
    results = results_of(run, result)
    points = embedding_map(run.test, result)
    charts = [
        networks_chart(run.part("verdict")),
        results_chart(results),
        recall_chart(result, results),
        *training_charts(run),
        similarity_chart(measures.tally, run.test.geometry),
        precision_recall_chart(measures.tally),
        roc_chart(measures.tally),
        chart(points),
        calibration_chart(run.part("calibration")),
        spectrum_chart(measures.singular_values, measures.shape.get("rho")),
    ]
    return Content(
        run=run,
        measures=measures,
        results=results,
        classes=class_table.classes(run.test, result, all_confusions),
        categories=class_table.categories(run.test, result),
        strips=queries.select(run.test, result),
        labels=check_labels(run.test, result),
        confused=confusions.select(run.test, measures.sample, all_confusions),
        map=points,
        charts={chart.name: chart for chart in charts if chart is not None},
    )
