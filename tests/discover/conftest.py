"""A folder of a review: twelve kinds of six photos, in pairs of kinds that look alike."""

import numpy as np
import pytest

from lookalike.discover.beginning import begin
from lookalike.discover.grouping import hierarchy
from lookalike.discover.photos import Photos


@pytest.fixture
def place(tmp_path):
    draw = np.random.default_rng(0)
    centres = draw.normal(size=(12, 16))
    centres[1::2] = centres[::2] + 0.4 * draw.normal(size=(6, 16))
    vectors = (np.repeat(centres, 6, 0) + 0.1 * draw.normal(size=(72, 16))).astype(np.float32)
    photos = Photos([f"{row:02d}.png" for row in range(72)], vectors, [None] * 72, "sphere")
    begin(tmp_path / "shop.review", photos, hierarchy(vectors), "one")
    return tmp_path / "shop.review"
