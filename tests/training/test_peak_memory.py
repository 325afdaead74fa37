import sys

import pytest
import torch

from lookalike.training.peak_memory import forget_peak, peak_memory

MEGABYTE, CPU = 2**20, torch.device("cpu")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems cannot forget a peak")
def test_the_peak_is_that_since_it_was_forgotten():
    forget_peak(CPU)
    before = peak_memory(CPU)
    big = torch.ones(64 * MEGABYTE)  # 256 MB
    assert peak_memory(CPU) - before > 200 * MEGABYTE
    del big
    forget_peak(CPU)
    assert peak_memory(CPU) - before < 100 * MEGABYTE
