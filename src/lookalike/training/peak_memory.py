"""The most memory a run held at once, as the system counts it: resident on the CPU, allocated on a GPU."""

import re
import resource
import sys
from contextlib import suppress
from pathlib import Path

import torch

PROCESS = Path("/proc/self")  # of Linux


def forget_peak() -> None:
    """Count from now on; where the system cannot, the peak stays that of the whole process."""
    with suppress(OSError):
        (PROCESS / "clear_refs").write_text("5")
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def peak_memory() -> int:
    """Bytes."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", (PROCESS / "status").read_text())
        if found:
            return 1024 * int(found[1])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
