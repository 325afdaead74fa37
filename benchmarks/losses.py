"""Speed and memory of every loss beside pytorch-metric-learning and beside the floor.

    python -m benchmarks.losses [--batches 128 512 1024 2048] [--only triplet fastap] [--json FILE]

The floor is what no loss over all pairs can go below: normalise, one matrix product, one row log-sum-exp, backward.
Every row runs in a forked child with one torch thread: ours, the peer and the floor take turns, and the minimum of five
rounds counts. The peer may use 10 GB and 60 s; if it fails, that is its result. Dimension 128, 4 samples per class.
"""

import argparse
import json
import math
import multiprocessing
import resource
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from benchmarks.peer_losses import PEERS
from lookalike import losses, miners

DIM, PER_CLASS, ROUNDS, PATIENCE, LIMIT = 128, 4, 5, 60, 10 * 2**30
TOO_LONG = f"more than {PATIENCE} s"
SLOWEST = 1e3 * PATIENCE / 2  # milliseconds of a step, on average, when warming up and one round do not fit
Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
SAME: dict[str, dict[str, Any]] = {  # settings that make the equations the same
    "margin_contrastive": {"normalise": "sphere"},
    "soft_triple": {"centres": 10},
}
MINED = {"multi_similarity": None, "margin": "distance_weighted"}  # as the peer's usual pairing


@dataclass
class Row:
    """Milliseconds of one step and megabytes above the resting size, at one batch size."""

    loss: str
    batch: int
    ours: float
    floor: float
    megabytes: float
    peer: float | None = None
    peer_megabytes: float | None = None
    peer_failed: str = ""


def data(batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(batch) // PER_CLASS
    centres = torch.randn(batch // PER_CLASS, DIM, generator=generator)
    return centres[labels] + 1.5 * torch.randn(batch, DIM, generator=generator), labels


def floor(embeddings: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    unit = torch.nn.functional.normalize(embeddings, dim=1)
    return (unit @ unit.T).logsumexp(1).mean()


def ours(name: str, batch: int) -> Step:
    loss = losses.build(name, classes=batch // PER_CLASS, dim=DIM, **SAME.get(name, {}))
    if MINED.get(name):
        miner = miners.build(MINED[name] or "")
        return lambda embeddings, labels: loss(embeddings, miner(embeddings, labels))
    return lambda embeddings, labels: loss(embeddings, labels)


def milliseconds(step: Step, batch: int) -> float:
    embeddings, labels = data(batch)
    embeddings.requires_grad_()
    start = time.perf_counter()
    step(embeddings, labels).backward()  # type: ignore[no-untyped-call]
    return 1e3 * (time.perf_counter() - start)


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def megabytes(step: Step, batch: int) -> float:
    """The high-water mark of one step above the resting size; meaningful in a fresh child only."""
    embeddings, labels = data(batch)
    embeddings.requires_grad_()
    before = resident()
    step(embeddings, labels).backward()  # type: ignore[no-untyped-call]
    return max(0.0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before)


def in_child(work: Callable[[Connection], None]) -> tuple[list[Any], str]:
    """What `work` sent before it ended, and how it ended: '' or the reason it failed."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_guarded, args=(work, sender))
    child.start()
    sender.close()
    sent, failed, deadline = [], "", time.monotonic() + PATIENCE
    try:
        while receiver.poll(max(0.0, deadline - time.monotonic())):
            sent.append(receiver.recv())
        failed = TOO_LONG
    except EOFError:
        pass
    child.kill()
    child.join()
    if sent and isinstance(sent[-1], str):
        failed = sent.pop()
    return sent, failed


def _guarded(work: Callable[[Connection], None], sender: Connection) -> None:
    torch.set_num_threads(1)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + LIMIT, size + LIMIT))
    try:
        work(sender)
    except (RuntimeError, MemoryError, IndexError, ValueError) as failure:
        short = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
        sender.send("more than 10 GB" if "memory" in short.lower() else short[:60])


def taking_turns(steps: dict[str, Step], batch: int, sender: Connection) -> None:
    """Rounds of one step each, the first for warming up; sends the minima so far after every round."""
    best = dict.fromkeys(steps, math.inf)
    for number in range(ROUNDS + 1):
        for who, step in steps.items():
            taken = milliseconds(step, batch)
            best[who] = min(best[who], taken) if number else best[who]
        if number:
            sender.send(best)


def measure(name: str, batch: int) -> Row:
    own, peer = ours(name, batch), PEERS.get(name)
    alone, _ = in_child(lambda sender: taking_turns({"ours": own, "floor": floor}, batch, sender))
    size, _ = in_child(lambda sender: sender.send(megabytes(own, batch)))
    row = Row(name, batch, alone[-1]["ours"], alone[-1]["floor"], size[-1])
    if peer is None:
        return row
    together = {"ours": own, "floor": floor, "peer": peer(batch // PER_CLASS, DIM)}
    times, row.peer_failed = in_child(lambda sender: taking_turns(together, batch, sender))
    if times:
        row.peer_failed = ""
        row.ours, row.floor, row.peer = (times[-1][who] for who in ("ours", "floor", "peer"))
        sizes, _ = in_child(lambda sender: sender.send(megabytes(together["peer"], batch)))
        row.peer_megabytes = sizes[-1] if sizes else None
    return row


def show(row: Row) -> None:
    line = f"{row.loss:20} {row.batch:5} {row.ours:9.1f} {row.ours / row.floor:7.1f}× {row.megabytes:8.0f}"
    if row.peer is not None:
        size = f"{row.peer_megabytes:8.0f}" if row.peer_megabytes is not None else f"{'?':>8}"
        line += f" {row.peer:10.1f} {row.peer / row.ours:8.1f}× {size}"
    print(line + (f"   peer: {row.peer_failed}" if row.peer_failed else ""), flush=True)


def summary(rows: list[Row]) -> None:
    for batch in sorted({row.batch for row in rows}):
        ratios = [row.peer / row.ours for row in rows if row.batch == batch and row.peer is not None]
        failed = [row.loss for row in rows if row.batch == batch and row.peer_failed]
        if ratios:
            mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
            middle = statistics.median(ratios + [math.inf] * len(failed))
            print(
                f"batch {batch}: the peer finished {len(ratios)} of {len(ratios) + len(failed)}; there ours is faster "
                f"by {mean:.1f}× (geometric mean), at the least {min(ratios):.2f}×; median of all {middle:.1f}×"
            )
            slow = [SLOWEST / row.ours for row in rows if row.batch == batch and row.peer_failed == TOO_LONG]
            if slow:
                mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios + slow))
                print(f"    with {len(slow)} that took more than {SLOWEST / 1e3:.0f} s a step: at least {mean:.1f}×")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs="+", default=[128, 512, 1024, 2048])
    parser.add_argument("--only", nargs="+", default=losses.names())
    parser.add_argument("--memory", type=int, default=4096, help="batch size of the memory table; 0 leaves it out")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # the peer calls what torch has deprecated
    torch.set_num_threads(1)
    print(
        f"{'loss':20} {'batch':>5} {'ours ms':>9} {'floor':>8} {'MB':>8} {'peer ms':>10} {'faster':>9} {'peer MB':>8}"
    )
    rows = []
    for batch in options.batches:
        for name in options.only:
            rows.append(measure(name, batch))
            show(rows[-1])
    summary(rows)
    largest = {}
    if options.memory:
        for name in options.only:
            step = ours(name, options.memory)
            sizes, failed = in_child(lambda sender, step=step: sender.send(megabytes(step, options.memory)))  # type: ignore[misc]
            largest[name] = sizes[-1] if sizes else math.inf
            print(f"{name:20} {options.memory:5} {largest[name]:9.0f} MB extra {failed}", flush=True)
        print(f"batch {options.memory}: at most {max(largest.values()):.0f} MB extra")
    if options.json:
        options.json.write_text(json.dumps({"rows": [asdict(row) for row in rows], "memory": largest}, indent=1))


if __name__ == "__main__":
    main()
