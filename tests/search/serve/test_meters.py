"""Counters of all workers as Prometheus reads them, and the rows of a file that they share."""

import re

from lookalike.search.serve.guard import route_of
from lookalike.search.serve.meters import BOUNDS, ROUTES, STAGES, Meters


def values(text):
    """Every line of a metric by its name and labels."""
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def test_requests_are_counted_by_route_and_status():
    meters = Meters()
    for route, status in (
        ("/v1/search", 200),
        ("/v1/search", 200),
        ("/v1/search", 418),
        ("/v1/search", 504),
        ("/secret", 502),
    ):
        meters.request(route, status, 0.003)
    counted = {name: value for name, value in values(meters.text(7)).items() if "requests_total" in name}
    assert counted == {
        'lookalike_requests_total{route="/v1/search",status="200"}': "2",
        'lookalike_requests_total{route="/v1/search",status="400"}': "1",
        'lookalike_requests_total{route="/v1/search",status="504"}': "1",
        'lookalike_requests_total{route="other",status="500"}': "1",
    }
    assert values(meters.text(7))['lookalike_stage_seconds_count{stage="request"}'] == "4"


def test_stages_fall_into_their_buckets():
    meters = Meters()
    meters.stages({"decode": 1.0, "network": 0.0, "search": 30_000.0})
    text = values(meters.text(0))
    for stage, counts in (("decode", [1] * 13), ("network", [0] * 13), ("search", [0] * 12 + [1])):
        bounds = [*(f"{bound:g}" for bound in BOUNDS), "+Inf"]
        name = f'lookalike_stage_seconds_bucket{{stage="{stage}",le='
        assert [text[f'{name}"{bound}"}}'] for bound in bounds] == [str(count) for count in counts]
    assert text['lookalike_stage_seconds_sum{stage="search"}'] == "30.000000"
    assert re.findall(r"_count{stage=\"(\w+)\"}", meters.text(0)) == list(STAGES)


def test_workers_share_a_file_and_one_that_is_started_again_goes_on(tmp_path):
    Meters.make(tmp_path / "meters", workers=2)
    first, second = (Meters(tmp_path / "meters", worker) for worker in (0, 1))
    first.request("/docs", 200, 0.1)
    second.request("/docs", 200, 0.1)
    first.waiting(3)
    second.waiting(4)
    text = values(first.text(12))
    assert text['lookalike_requests_total{route="/docs",status="200"}'] == "2"
    assert [text[f"lookalike_{name}"] for name in ("waiting", "items", "workers")] == ["7", "12", "2"]
    again = values(Meters(tmp_path / "meters", 1).text(12))
    assert again['lookalike_requests_total{route="/docs",status="200"}'] == "2"
    assert again["lookalike_waiting"] == "3"  # what it was working on is gone


def test_every_route_of_the_api_has_a_series_of_its_own(inside):
    paths = {route.path for route in inside.door.app.routes if route.path.startswith("/v1/")}
    assert {route_of(path) for path in paths} == {route for route in ROUTES if route.startswith("/v1/")}
