"""What is measured on a part of the queries is near what all say; the map draws whole classes; charts are true."""

import numpy as np
import pytest

from lookalike.evaluation.pair_curves import Tally
from lookalike.report.charts.chart import Axis, Chart, ReferenceLine, Series
from lookalike.report.charts.layout import Frame, drawing
from lookalike.report.charts.svg import draw
from lookalike.report.charts.ticks import ticks
from lookalike.report.run import embedding_map, measures
from lookalike.report.run.figures import recall_chart
from lookalike.report.run.pair_figures import bins, evenly, shares, similarity_chart, thresholds
from lookalike.report.run.record import RunRecord, UnseenImages
from lookalike.report.run.training_figures import column, training_charts
from lookalike.runs import RunFolder
from lookalike.runs.log import Log
from tests.report.conftest import labels, vectors


def unseen(noise: float = 0.8) -> UnseenImages:
    return UnseenImages(vectors(noise), labels(), None, [], None, None, "sphere")


def tally_by_loop(x: np.ndarray, names: list[str]) -> tuple[list[float], list[float]]:
    """Scores of same-class and other pairs."""
    same, other = [], []
    for i in range(len(x)):
        for j in range(i):
            (same if names[i] == names[j] else other).append(float(x[i] @ x[j]))
    return same, other


def test_a_part_of_the_queries_meets_the_whole_gallery_but_not_itself():
    assert measures.measure(unseen(), pairs=1).pairs_of == len(labels())  # fewer than the 256 that it takes at least
    rows = np.concatenate([vectors(0.8, seed) for seed in range(2)])
    names = [f"{name} {turn}" for turn in range(2) for name in labels()]
    twice = UnseenImages(rows, names, None, [], None, None, "sphere")
    whole, part = measures.measure(twice), measures.measure(twice, pairs=1)
    n, each = len(names), 8
    assert (whole.pairs_of, part.pairs_of) == (n, 256)
    assert part.tally.same[-1] == 256 * (each - 1)  # itself is not among the pairs
    assert part.tally.other[-1] == 256 * (n - each)
    chosen = measures.some(n, 256, 0)
    assert part.sample["recall@1"] == pytest.approx(np.nanmean(whole.result.per_query["recall@1"][chosen]))


def test_distribution_and_thresholds_equal_plain_loops():
    x, names = vectors(0.8), labels()
    same, other = tally_by_loop(x, names)
    tally = measures.measure(unseen()).tally
    edges = bins(tally)
    assert len(edges) > 40
    for counts, scores in ((tally.same, same), (tally.other, other)):
        counted = np.histogram(scores, edges)[0] / len(scores)
        np.testing.assert_allclose(shares(tally, counts, edges), counted, atol=2 / len(scores))
        assert shares(tally, counts, edges).sum() == pytest.approx(1)
    for row in thresholds(tally):
        right = sum(score >= row.threshold - 1e-6 for score in same)
        wrong = sum(score >= row.threshold - 1e-6 for score in other)
        assert right / (right + wrong) == pytest.approx(row.precision)
        assert row.precision >= row.target
        assert right / len(same) == pytest.approx(row.recall)


def test_bins_of_a_counted_tally_hold_equally_many_of_its_steps():
    threshold = np.linspace(-1, 1, 1001)[:-1][::-1][3:]
    count = np.arange(1.0, len(threshold) + 1)
    tally = Tally(threshold, count, count)
    parts = shares(tally, count, bins(tally))
    assert parts.sum() == pytest.approx(1)
    np.testing.assert_allclose(parts[:-1], parts[0])


def test_a_precision_nobody_reaches_has_no_threshold():
    tally = Tally(np.array([0.9, 0.5]), np.array([1.0, 2.0]), np.array([9.0, 10.0]))
    assert thresholds(tally) == []
    assert "no threshold makes 9 of 10" in similarity_chart(tally, "sphere").caption


def test_points_of_a_curve_lie_evenly_also_where_positives_are_rare():
    recall = np.r_[np.linspace(0, 1, 50), np.ones(100_000)]
    places = evenly(recall)
    assert len(np.unique(recall[places])) == 50
    assert places[0] == 0
    assert places[-1] == len(recall) - 1


def test_the_map_draws_classes_not_single_images():
    names = [f"class {row // 5}" for row in range(60_000)]
    rows = embedding_map._sample(names, seed=0)
    assert len(rows) == len(set(rows.tolist())) == embedding_map.POINTS
    sizes = np.unique([names[row] for row in rows], return_counts=True)[1]
    assert (sizes == 5).mean() > 0.99


@pytest.mark.usefixtures("without_tsne")
def test_without_tsne_the_map_is_pca():
    shown = embedding_map.embedding_map(unseen(), measures.measure(unseen()).result)
    assert shown.method == "PCA"
    x = vectors(0.8).astype(float)
    values = np.linalg.svd(x - x.mean(0), compute_uv=False)
    np.testing.assert_allclose(np.linalg.norm(shown.points, axis=0), values[:2])


def test_two_dimensions_and_one_are_enough_for_a_map():
    assert embedding_map._pca(np.array([[1.0], [2.0], [4.0]])).shape == (3, 2)


def test_long_logs_are_averaged_and_broken_numbers_left_out():
    events = [{"step": step, "loss": float(step)} for step in range(1, 1001)] + [{"step": 5, "loss": float("inf")}, {}]
    points = column(events, "loss")
    assert len(points) <= 300
    assert all(x == y for x, y in points)
    assert np.mean([y for _, y in points]) == pytest.approx(500.5)


def test_a_value_is_drawn_where_it_belongs():
    chart = Chart(
        "c",
        "t",
        "see.",
        Axis("x (m)", 1, 100, log=True),
        Axis("y (%)", 0, 1, percent=True),
        (Series("a", (1.0, 10.0), (0.0, 1.0)), Series("<b>", (1.0,), (0.5,), "dots", 1)),
        (ReferenceLine(10.0, "here"),),
    )
    frame = Frame(chart)
    assert frame.x(10) == pytest.approx((frame.left + frame.right) / 2)
    assert (frame.y(0), frame.y(1)) == (frame.bottom, frame.top)
    text = draw(drawing(chart))
    assert f"M{frame.left:.1f} {frame.bottom:.1f}L{frame.x(10):.1f} {frame.top:.1f}" in text
    assert "&lt;b&gt;" in text
    assert "<b>" not in text


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-3.2, 7.9), (0, 1e-5), (999, 1001), (0, 3e6), (0.2, 0.200001), (-1e9, 1e9)]
)
def test_ticks_are_few_round_and_inside(low, high):
    marks = ticks(Axis("x", low, high))
    assert 3 <= len(marks) <= 11
    assert all(low - 1e-9 * abs(low) <= value <= high * (1 + 1e-9) for value, _ in marks)
    assert len({word for _, word in marks}) == len(marks)


@pytest.mark.parametrize("on", [None, "test"])
def test_a_curve_on_test_is_called_optimistic(tmp_path, on):
    lines = [{"event": "validation", "step": step, "map@r": step / 10} for step in range(3)]
    log = [line | ({"on": on} if on else {}) for line in lines]
    run = RunRecord(RunFolder(tmp_path), unseen(), "", Log(log, 0), None, {})
    (chart,) = training_charts(run)
    assert ("optimistic" in chart.title) == (on == "test")
    assert chart.title.startswith("Test" if on else "Validation")


def test_a_baseline_known_at_one_k_is_a_dot():
    result = measures.measure(unseen()).result
    rows = [
        {"role": "baseline", "name": "few", "metrics": {"recall@1": 0.2}},
        {"role": "baseline", "name": "many", "metrics": {"recall@1": 0.2, "recall@4": 0.4}},
    ]
    styles = {series.name: series.style for series in recall_chart(result, rows).series}
    assert (styles["few"], styles["many"]) == ("dots", "line")
