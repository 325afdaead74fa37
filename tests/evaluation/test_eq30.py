"""Eq. 30 of Roth et al. to the letter, where the gallery has fewer than 1,000 items."""

import pytest
import torch

from lookalike import evaluate
from lookalike.evaluation.names import ranking_names


def test_eq_30_divides_by_a_thousand_and_is_measured_only_when_named():
    labels = torch.arange(40) // 4
    vectors = torch.randn(40, 8, generator=torch.Generator().manual_seed(0))
    result = evaluate(vectors, labels, metrics=["precision@1000_eq30", "precision@1000_doc"])
    assert result["precision@1000_eq30"] == pytest.approx(3 / 1000)
    assert result["precision@1000_doc"] == pytest.approx(3 / 39)
    assert "precision@1000_eq30" not in ranking_names()
