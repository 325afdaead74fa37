"""CCP's covering radius: from logs, and in a plane of glyphs."""

import pytest
import torch

from lookalike.errors import UserError
from papers.ccp.coverage import draw_coverage, instances
from papers.ccp.coverage_glyphs import CLASSES, draw_glyph_coverage, snapshots
from tests.fixtures.figure_rules import assert_readable
from tests.report.compared import finished


def test_instances_come_from_the_log(tmp_path):
    by_run = instances([finished(tmp_path / "ccp", 0.3, instances=3), finished(tmp_path / "plain", 0.3, loss="nca")])
    assert list(by_run) == ["ccp"]
    assert [row["instance"] for row in by_run["ccp"]] == [0, 1, 2]
    assert [row["ratio"] for row in by_run["ccp"]] == [0.5, 0.25, pytest.approx(0.5 / 3)]
    assert_readable(draw_coverage(by_run))


def test_a_run_without_ccp_is_named(tmp_path):
    with pytest.raises(UserError, match=r"add the table \[ccp\]"):
        instances([finished(tmp_path / "plain", 0.3)])


@pytest.mark.slow
def test_glyphs_in_a_plane():
    (shot,) = snapshots(count=1)
    assert shot.points.norm(dim=1).max() <= 1 + 1e-5
    for code in range(CLASSES):
        mine = shot.points[shot.labels == code]
        nearest = torch.cdist(mine, shot.converged[code]).amin(1)
        assert shot.radius[code] == pytest.approx(float(nearest.max()), abs=1e-5)
    assert_readable(draw_glyph_coverage([shot]))
