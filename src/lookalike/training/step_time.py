"""How long a step takes, measured by taking a few and undoing them."""

import copy
import time

import torch

from lookalike.training.loop import Loop

STEPS = 4  # the first ones pay for memory and caches


def seconds_per_step(loop: Loop, steps: int = STEPS) -> float:
    """The time of one step; the loop is left as it was."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        before = copy.deepcopy(loop.state_dict())
        times = []
        for _ in range(steps):
            start = time.perf_counter()
            loop.advance()
            times.append(time.perf_counter() - start)
        loop.load_state_dict(before)
    return min(times[1:])
