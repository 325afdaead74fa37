"""Recall against one setting over runs."""

import pytest

from lookalike.errors import UserError
from papers.multi_similarity.setting_effect import draw_setting_effect, setting_effect
from tests.fixtures.figure_rules import assert_readable
from tests.report.compared import finished


def test_a_setting_in_order_with_one_line_per_rest(tmp_path):
    runs = [
        finished(tmp_path / f"{loss}{batch}", 8 / batch, loss=loss, batch=batch)
        for loss in ("nca", "margin")
        for batch in (32, 8, 16)
    ]
    result = setting_effect(runs, "sampler.batch_size")
    assert list(result["lines"]) == ["loss.name nca", "loss.name margin"]
    assert [point["value"] for point in result["lines"]["loss.name nca"]] == [8, 16, 32]
    means = [point["mean"] for point in result["lines"]["loss.name nca"]]
    assert means == sorted(means)
    assert_readable(draw_setting_effect(result))
    with pytest.raises(UserError, match=r"did you mean 'sampler.batch_size'"):
        setting_effect(runs, "sampler.batchsize")
