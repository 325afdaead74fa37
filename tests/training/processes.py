"""What two processes are asked to do by test_distributed: `python -m tests.training.processes FOLDER`.

Every process saves what it found; the parent does the same alone and compares.
"""

import os
import signal
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import TensorDataset

from lookalike import losses, miners, samplers
from lookalike.cli import leave
from lookalike.errors import UserError
from lookalike.evaluation import evaluate
from lookalike.processes import Ranks
from lookalike.training import Clipping, Loop, Objective, Plan, Schedule, optimisers, train
from lookalike.training.ccp import FORMS, Chance, ChanceConstraints, ProxyObjective
from lookalike.training.distributed import joined
from lookalike.training.memory import CrossBatchMemory
from lookalike.training.mixup import Mixer
from lookalike.training.pool import Pool

CLASSES, EACH, DIM = 6, 8, 4
LABELS = torch.arange(CLASSES).repeat_interleave(EACH)
POINTS = torch.randn(CLASSES * EACH, 5, generator=torch.Generator().manual_seed(0)).double()


def network(norm=False):
    torch.manual_seed(1)
    middle = [nn.BatchNorm1d(16)] if norm else []
    return nn.Sequential(nn.Linear(5, 16), *middle, nn.Tanh(), nn.Linear(16, DIM)).double()


def objective(name, drawing):
    torch.manual_seed(2)
    if name == "triplet":
        return Objective(losses.Triplet(), miners.DistanceWeighted(generator=drawing))
    if name == "proxy":
        return Objective(losses.ProxyAnchor(CLASSES, DIM))
    if name == "memory":
        memory = CrossBatchMemory(36, DIM)
        return Objective(losses.CosineContrastive(), memory=memory, memory_start=0)
    if name == "ccp":
        return ProxyObjective(
            losses.MarginContrastive(**FORMS["margin_contrastive"]), Chance(proxies=2, pool=3), CLASSES, DIM
        )
    return Objective(losses.MultiSimilarity())


SCENES = ("pair", "triplet", "proxy", "memory", "ccp", "norm", "chunk")


def loop(name):
    net, drawing = network(norm=name == "norm"), torch.Generator().manual_seed(3)
    goal = objective(name, drawing).double()
    groups = [{"params": list(net.parameters()), "lr": 0.05}, *goal.parameter_groups(0.05)]
    step = optimisers.build("sgd", groups)
    dataset = TensorDataset(POINTS, LABELS)
    trainer = Loop(
        net,
        goal,
        step,
        Schedule(steps=9),
        dataset,
        samplers.ClassBalanced(LABELS, 12, 3),
        clipping=Clipping(10.0),
        generators={"miner": drawing},
        chunk=4 if name == "chunk" else None,
    )
    if name == "ccp":
        trainer.strategy = ChanceConstraints(net, goal, step, Pool(dataset, LABELS), weight_decay=1e-3)
        trainer.strategy.begin()
        trainer.strategy.instance, trainer.strategy.anchor = 1, {k: v.detach() + 1 for k, v in net.named_parameters()}
    return trainer


def steps(name, count=4):
    """Losses, embeddings and gradients of some steps, and all parameters after them."""
    trainer, results = loop(name), {}
    for number in range(count):
        trained = trainer.advance()
        results |= {f"{number}.{term}": value for term, value in trained.terms.items()}
        results |= {f"{number}.embeddings": trained.embeddings, f"{number}.labels": trained.labels}
        parts = [*trainer.network.named_parameters(), *trainer.objective.named_parameters()]
        results |= {f"{number}.gradient.{part}": value.grad.clone() for part, value in parts}
    results |= {f"network.{part}": value for part, value in trainer.network.state_dict().items()}
    return results | {f"objective.{part}": value for part, value in trainer.objective.state_dict().items()}


def exchanges(ranks):
    """What is gathered, spread and agreed on."""
    net = network()
    with torch.no_grad():
        spread = ranks.spread(len(POINTS) - 1, lambda rows: net(POINTS[rows]))  # 47 rows: not a multiple
    result = evaluate(spread.float(), LABELS[:-1], metrics=["map@r", "recall@1"])
    return {
        "spread": spread,
        "figures": torch.tensor([result["map@r"], result["recall@1"]]),
        "told": torch.tensor(ranks.from_first(lambda: 17 + ranks.rank)),
        "any": torch.tensor([ranks.any(ranks.rank == ranks.count - 1), ranks.any(False)]),
    }


def mixed():
    """Partners come from the same process; all see the same labels."""
    trainer = loop("pair")
    trainer.mixer = Mixer(2.0, ("input",), torch.Generator().manual_seed(4))
    trained = trainer.advance()
    return {"loss": trained.terms["loss"], "labels": trained.labels}


def same_everywhere(folder, ranks):
    """All of it, once; each process saves what it saw."""
    results = {f"{name}/{part}": value for name in SCENES for part, value in steps(name).items()}
    results |= {f"exchanges/{part}": value for part, value in exchanges(ranks).items()}
    results |= {f"mixed/{part}": value for part, value in mixed().items()}
    try:
        samplers.ClassBalanced(LABELS, 15, 3).check_shares(ranks.count)
        raise AssertionError("15 images for two processes")
    except UserError:
        pass
    torch.save(results, folder / f"rank{ranks.rank}.pt")


def run(folder, count, stop=lambda: False):
    """A whole course with checkpoints and validation; who is first writes."""
    trainer = loop("triplet")
    values = lambda: {"map@r": float(trainer.network[0].weight.detach().abs().sum())}  # noqa: E731
    plan = Plan(count, validate_every=2)
    ending = train(trainer, plan, validate=values, folder=folder / "checkpoint", stop=stop)
    return {part: value.clone() for part, value in trainer.network.state_dict().items()}, ending


def resumed(folder, ranks):
    """Half a run on two processes, stopped by the second one's wish; the parent goes on alone."""
    from lookalike.training import StoppedError

    calls = 0

    def stop():
        nonlocal calls
        calls += 1
        return ranks.rank == 1 and calls == 3

    try:
        run(folder, 6, stop)
    except StoppedError as stopped:
        (folder.parent / f"stopped{ranks.rank}").write_text(str(stopped))


def killed(folder, ranks):
    """The second process dies in the middle; the first says so and leaves its checkpoint."""

    def stop():
        if (folder / "checkpoint" / "latest").exists() and ranks.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
        return False

    try:
        run(folder, 10_000, stop)
    except UserError as error:
        (folder.parent / "message").write_text(str(error))
        return 2
    return 0


def main():
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    with joined() as ranks:
        assert ranks == Ranks(int(os.environ["RANK"]), 2)
        same_everywhere(folder, ranks)
        resumed(folder / "resumed", ranks)
        code = killed(folder / "killed", ranks)
    leave(code)


if __name__ == "__main__":
    main()
