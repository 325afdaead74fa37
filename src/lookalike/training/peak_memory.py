"""The most memory a run held at once, as the system counts it: resident on the CPU, allocated on a GPU."""

import ctypes
import re
import sys
from contextlib import suppress
from pathlib import Path

import torch

PROCESS = Path("/proc/self")  # of Linux


def forget_peak(device: torch.device) -> None:
    """Count from now on; where the system cannot, the peak stays that of the whole process."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)  # what an earlier run in this process held and no longer needs
    with suppress(OSError):
        (PROCESS / "clear_refs").write_text("5")


def peak_memory(device: torch.device) -> int | None:
    """Bytes; None where the system does not count."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    with suppress(OSError):
        peak = re.search(r"VmHWM:\s+(\d+) kB", (PROCESS / "status").read_text())
        if peak:
            return 1024 * int(peak[1])
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
