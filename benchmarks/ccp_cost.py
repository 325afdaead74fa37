"""What CCP costs beside its base loss: `python -m benchmarks.ccp_cost [--steps 200] [--json PATH]`.

On glyphs with four convolutions: seconds per step, per re-initialisation (a pool of every class through the network,
and the choice of proxies), the memory of proxies and weights kept, and the steps until validation stands still. The
document's figures: about 8% more time per step, 10–35% more steps. Seconds are of the processor, on one thread.
"""

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import process_time
from typing import Any

import torch

from lookalike import data
from lookalike.data import Dataset
from lookalike.evaluation.table import aligned
from lookalike.fit.defaults import default
from lookalike.fit.prepare import Validation
from lookalike.protocols.class_disjoint import Parts
from lookalike.recipe import Recipe, build, of_tree, overridden
from lookalike.recipe.protocol import parts
from lookalike.runs.log import Event
from lookalike.training import Loop, train
from lookalike.training.ccp import ChanceConstraints

LOSS = "margin_contrastive"
BATCH = ("sampler.name=class_queue", "sampler.batch_size=32", "sampler.per_class=4", "schedule.name=constant")
STOP = ("train.patience=12", "train.validate_every=25", "optimiser.lr=5e-4", "evaluation.geometry=ball")
SIZES = {"base": (), "CCP, 1 proxy": ("ccp.proxies=1",), "CCP, 8 proxies": ("ccp.proxies=8",)}


def recipe(dataset: Dataset, steps: int, changes: tuple[str, ...]) -> Recipe:
    given = [f"loss.name={LOSS}", f"train.steps={steps}", "train.precision=float32", *BATCH, *STOP, *changes]
    return of_tree(overridden(default(dataset), given))


def step_seconds(loops: Mapping[str, Loop], rounds: int = 40) -> dict[str, float]:
    """The quickest step of each, taken in turn: a machine that is busy with other things slows all of them alike."""
    taken: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(rounds):
        for name, loop in loops.items():
            begin = process_time()
            loop.advance()
            taken[name].append(process_time() - begin)
    return {name: min(times) for name, times in taken.items()}


def kept_bytes(loop: Loop) -> int:
    """Proxies with their moments, and two copies of the weights."""
    if not isinstance(loop.strategy, ChanceConstraints):
        return 0
    weights = sum(parameter.numel() for parameter in loop.network.parameters())
    return 4 * (4 * loop.strategy.objective.proxies.numel() + 2 * weights)


def costs(dataset: Dataset, divided: Parts) -> dict[str, dict[str, Any]]:
    """Time per step and per re-initialisation, and what is kept in memory."""
    loops, rows = {}, {}
    for name, changes in SIZES.items():
        settings = recipe(dataset, 1000, changes)
        loop = loops[name] = build.loop(settings, build.model(settings), divided.train)
        begin = process_time()
        if loop.strategy is not None:
            loop.strategy.begin()
        rows[name] = {"again": None if loop.strategy is None else process_time() - begin, "bytes": kept_bytes(loop)}
    times = step_seconds(loops)
    return {name: {"step": times[name], **row} for name, row in rows.items()}


def course(settings: Recipe, divided: Parts) -> dict[str, Any]:
    """A whole run: steps until it stopped, its best validation, and what each instance reported."""
    model = build.model(settings)
    loop = build.loop(settings, model, divided.train)
    events: list[Event] = []
    with tempfile.TemporaryDirectory() as folder:
        plan = build.plan(settings, loop.schedule.steps, batches=len(loop.sampler))
        assert divided.validation is not None
        validation = Validation(settings, model, divided.validation)
        ending = train(loop, plan, validate=validation, folder=Path(folder), tell=events.append)
    instances = [
        {name: event[name] for name in ("instance", "step", "covering_radius", "between_classes")}
        for event in events
        if "instance" in event
    ]
    return {"steps": ending.steps, "best_step": ending.best_step, "map@r": ending.best["map@r"], "instances": instances}


def shown(rows: dict[str, dict[str, Any]]) -> str:
    base = rows["base"]["step"]
    table = [["", "ms per step", "beside base", "s per re-initialisation", "MB kept", "steps", "best at", "map@r"]]
    for name, row in rows.items():
        again = "" if row["again"] is None else f"{row['again']:.2f}"
        table.append(
            [
                name,
                f"{1000 * row['step']:.1f}",
                f"{100 * (row['step'] / base - 1):+.1f}%",
                again,
                f"{row['bytes'] / 1e6:.2f}",
                str(row["steps"]),
                str(row["best_step"]),
                f"{row['map@r']:.4f}",
            ]
        )
    lines = aligned(table)
    for name, row in rows.items():
        for instance in row["instances"]:
            lines.append(
                f"{name}, step {instance['step']}: instance {instance['instance']}, covering radius "
                f"{instance['covering_radius']:.4f}, between classes {instance['between_classes']:.4f}"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    dataset = data.load("glyphs")
    divided = parts(recipe(dataset, chosen.steps, ()), dataset)
    rows = costs(dataset, divided)
    for name, changes in SIZES.items():
        rows[name] |= course(recipe(dataset, chosen.steps, changes), divided)
    print(shown(rows))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
