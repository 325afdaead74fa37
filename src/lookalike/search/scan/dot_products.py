"""Products of several queries with int8 vectors by the processor's own instructions for them (VNNI), through torch.

Thirty-two queries take about half of the time of the compiled loop. The function of torch is not a public one, and on
processors without these instructions it may saturate: it is used only where it is there, and after it has given exact
results for the largest products of the same width; elsewhere the loop answers.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Int8, Int32

ROWS = 4096  # one block: small enough to stay in the cache, and always the same shape
LEAST, NARROWEST = 6, 16  # queries and dimensions from which on it is faster


def products(
    queries: Int8[np.ndarray, "queries d"], items: Int8[np.ndarray, "rows d"]
) -> Int32[np.ndarray, "queries rows"]:
    """All products, exactly."""
    result: Any = torch._int_mm(torch.from_numpy(queries), torch.from_numpy(items).T)
    return np.asarray(result.numpy())


@cache
def exact(width: int) -> bool:
    """Whether the largest products and random ones of this width come out right."""
    try:
        if not torch.cpu._is_vnni_supported():
            return False
        draw = np.random.default_rng(width)
        queries = draw.integers(-127, 128, (5, width), dtype=np.int8)
        items = draw.integers(-127, 128, (ROWS, width), dtype=np.int8)
        queries[:2], items[:2] = 127, [[127], [-127]]
        return bool((products(queries, items) == queries.astype(np.int32) @ items.astype(np.int32).T).all())
    except (AttributeError, RuntimeError):
        return False


def usable(queries: int, rows: int, width: int, exact: Callable[[int], bool] = exact) -> bool:
    """Whether the products of so many queries and rows are faster here, and `exact` for their width."""
    return queries >= LEAST and rows >= ROWS and width >= NARROWEST and width % 4 == 0 and exact(width)
