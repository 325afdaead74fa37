"""Memory of a training step is kept for the next one.

On Linux, glibc otherwise gives every large activation back to the system and fetches it again, page by page, which
costs a CPU half of its time (benchmarks/training_step.py).
"""

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # malloc.h


def keep_memory() -> bool:
    """Whether the allocator accepted the settings."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another C library
        return False
    return bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, 2**31 - 1))
