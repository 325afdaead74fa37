"""The loop against a step written by hand; any network, any dataset, every sampler, any number of workers."""

import copy

import pytest
import torch

from lookalike import losses, miners, samplers
from lookalike.data import Augmentation, AugmentedImages, arrays
from lookalike.errors import UserError
from lookalike.evaluation import evaluate
from lookalike.models import Conv4, Embedder, Unfreezing
from lookalike.samplers import EmbeddingBank
from lookalike.training import Clipping, Loop, Objective, Plan, Schedule, optimisers, train
from tests.training.scenes import DIM, Net, Points, loop, same, weights


def by_hand(steps):
    """What the loop of `loop()` must do, written out."""
    network, dataset, loss = Net(), Points(), losses.MultiSimilarity()
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01, fused=True)
    schedule = Schedule("cosine", steps=40, warmup=3)
    sampler = samplers.build("class_balanced", labels=dataset.labels, batch_size=12, per_class=3)
    values = []
    while len(values) < steps:
        for rows in sampler:
            network.train()
            for group in optimiser.param_groups:
                group["lr"] = 0.01 * schedule.factor(len(values))
            value = loss(network(dataset.points[rows]), dataset.labels[rows])
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
            values.append(value.detach())
    return network, values


def test_steps_equal_steps_written_by_hand_bit_by_bit():
    torch.manual_seed(7)
    network, values = by_hand(steps=12)
    torch.manual_seed(7)
    ours = loop()
    for value in values:
        trained = ours.advance()
        assert torch.equal(trained.terms["loss"], value)
        assert set(trained.seconds) == {"load", "forward", "loss", "backward", "update"}
    assert same(weights(ours.network), weights(network))
    assert ours.step == 12
    assert ours.epoch == 3  # 48 points make 4 batches


def test_the_gradient_of_the_embeddings_is_the_one_of_the_loss():
    ours = loop()
    trained = ours.advance()
    copy = trained.embeddings.clone().requires_grad_()
    losses.MultiSimilarity()(copy, trained.labels).backward()
    assert torch.allclose(trained.gradient, copy.grad, atol=1e-7)
    assert not trained.embeddings.requires_grad


def test_a_plain_network_learns_from_a_plain_dataset():
    dataset, unseen = Points(), Points(seed=1)
    ours = loop(dataset=dataset, steps=80)

    def recall():
        with torch.no_grad():
            return evaluate(ours.network.eval()(dataset.points), dataset.labels, metrics="map@r")["map@r"]

    before = recall()
    train(ours, Plan(80))
    assert recall() > before + 0.1
    assert len(unseen) == len(dataset)


def test_bfloat16_trains_on_a_cpu_and_float32_is_left_alone():
    half, full, auto = (loop(precision=precision) for precision in ("bfloat16", "float32", "auto"))
    values = {}
    for name, ours in (("half", half), ("full", full), ("auto", auto)):
        torch.manual_seed(0)
        trained = [ours.advance() for _ in range(6)]
        assert {step.embeddings.dtype for step in trained} == {torch.bfloat16 if name == "half" else torch.float32}
        values[name] = torch.stack([step.terms["loss"].float() for step in trained])
    assert torch.equal(values["auto"], values["full"])  # a CPU computes no faster in half the bits
    assert torch.allclose(values["half"], values["full"], rtol=0.1, atol=0.02)
    assert all(parameter.dtype == torch.float32 for parameter in half.network.parameters())
    assert not same(weights(half.network), weights(loop().network))


@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_a_compiled_network_learns_the_same_and_keeps_its_names():
    start = torch.nn.Sequential(torch.nn.Linear(Points().points.shape[1], 8), torch.nn.ReLU(), torch.nn.Linear(8, DIM))
    plain, compiled = loop(network=copy.deepcopy(start)), loop(network=copy.deepcopy(start), compiled=True)
    for _ in range(3):
        torch.testing.assert_close(compiled.advance().terms["loss"], plain.advance().terms["loss"])
    assert compiled.forward is not compiled.network
    assert compiled.state_dict()["network"].keys() == plain.state_dict()["network"].keys()
    for name, value in weights(plain.network).items():
        torch.testing.assert_close(weights(compiled.network)[name], value)
    torch.compiler.reset()


@pytest.mark.plain
def test_a_misspelt_precision_is_refused():
    with pytest.raises(UserError, match="did you mean 'bfloat16'"):
        loop(precision="bfloat")


SETTINGS = {
    "category_pairs": {"batch_size": 12, "per_class": 3, "per_category": 6},
    "category_random": {"batch_size": 12, "per_class": 3},
    "class_balanced": {"batch_size": 12, "per_class": 3},
    "class_chunks": {"batch_size": 12, "per_class": 3},
    "class_queue": {"batch_size": 12, "per_class": 3},
    "class_random": {"batch_size": 12},
    "coreset": {"batch_size": 12},
    "d2_coreset": {"batch_size": 12},
    "distribution_match": {"batch_size": 12, "per_class": 3, "big_batch": 24},
    "frechet": {"batch_size": 12, "per_class": 3, "big_batch": 24},
    "one_per_class": {"batch_size": 4},
}


def with_sampler(name, workers=0):
    dataset = Points(rows=True)
    bank = None
    if samplers.needs_bank(name):
        bank = EmbeddingBank(len(dataset), DIM)
        bank.update(torch.arange(len(dataset)), Net().eval()(dataset.points))
    known = samplers.catalog.settings_of(samplers.MEMBERS[name])
    settings = {key: value for key, value in SETTINGS[name].items() if key in known}
    drawn = samplers.build(name, labels=dataset.labels, categories=dataset.labels // 3, bank=bank, **settings)
    miner = miners.DistanceWeighted(generator=torch.Generator().manual_seed(0))
    goal = Objective(losses.Margin(), miner)
    return loop(
        objective=goal, dataset=dataset, sampler=drawn, bank=bank, generators={"m": miner.generator}, workers=workers
    )


@pytest.mark.parametrize("name", samplers.names())
def test_every_sampler_feeds_the_loop_and_banks_are_kept_up_to_date(name):
    ours = with_sampler(name)
    before = weights(ours.network)
    old = None if ours.bank is None else ours.bank.vectors.clone()
    trained = None
    for _ in range(2 * len(ours.sampler) + 1):
        trained = ours.advance()
    assert ours.epoch == 2
    if name != "one_per_class":  # no positives, nothing to learn for this loss
        assert not same(before, weights(ours.network))
    if old is not None:
        assert not torch.equal(old, ours.bank.vectors)
        unit = torch.nn.functional.normalize(trained.embeddings, dim=1)
        apart = (unit[:, None] - ours.bank.vectors).norm(dim=2).amin(1)
        assert apart.max() < 1e-6  # the last batch is in the bank, on the sphere


@pytest.mark.parametrize("name", ["class_balanced", "coreset"])
def test_a_restored_loop_repeats_every_bit(name):
    def run(ours, steps):
        for _ in range(steps):
            ours.advance()
        return ours

    torch.manual_seed(3)
    whole = run(with_sampler(name), 11)
    torch.manual_seed(3)
    state = run(with_sampler(name), 6).state_dict()
    torch.manual_seed(99)
    again = with_sampler(name)
    again.load_state_dict(state)
    assert same(weights(run(again, 5).network), weights(whole.network))


class Slow:
    """Images in memory, as our own view of them: augmented by tickets."""

    def __init__(self):
        draw = torch.Generator().manual_seed(0)
        self.labels = torch.arange(4).repeat_interleave(6)
        pixels = torch.randint(0, 256, (24, 16, 16), generator=draw, dtype=torch.uint8)
        self.images = arrays(pixels, self.labels)


def on_images(workers):
    scene = Slow()
    network = Embedder(Conv4(channels=3), dim=8)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.05, generator=torch.Generator().manual_seed(0))
    view = AugmentedImages(scene.images, Augmentation(16, area=(0.3, 1.0)), seed=0)
    groups = list(network.parameter_groups(1e-3))
    return Loop(
        network,
        Objective(losses.MultiSimilarity()),
        optimisers.build("adamw", groups),
        Schedule(steps=9),
        view,
        samplers.build("class_balanced", labels=scene.labels, batch_size=8, per_class=2),
        lambda pixels: pixels.float() / 255,
        workers=workers,
    )


@pytest.mark.parametrize(
    "build", [lambda workers: on_images(workers), lambda workers: with_sampler("coreset", workers)]
)
def test_the_number_of_workers_changes_nothing(build):
    ends = []
    for workers in (0, 2):
        torch.manual_seed(5)
        ours = build(workers)
        for _ in range(2 * len(ours.sampler) + 1):
            ours.advance()
        ends.append(weights(ours.network))
        ours.batches = None  # ends the workers
    assert same(*ends)


def releasing():
    ours = on_images(0)
    ours.unfreezing = Unfreezing(epoch=1, every=1)
    return ours


def test_stages_are_released_epoch_by_epoch():
    ours = releasing()
    stages = list(ours.network.backbone.stages)
    for epoch in range(4):
        before = weights(ours.network)
        for _ in range(len(ours.sampler)):
            ours.advance()
        learnt = {name: value.detach() for name, value in ours.network.named_parameters()}
        moved = {name for name in learnt if not torch.equal(before[name], learnt[name])}
        released = stages[len(stages) - epoch :]
        expected = {name for name in learnt if "head" in name or any(f".{stage}." in name for stage in released)}
        assert moved == expected, epoch


@pytest.mark.parametrize("steps", [3, 4, 7])
def test_what_is_frozen_is_restored(steps):
    torch.manual_seed(0)
    ours, again = releasing(), releasing()
    for _ in range(steps):
        ours.advance()
    again.load_state_dict(copy.deepcopy(ours.state_dict()))
    assert again.network.frozen == ours.unfreezing.frozen_at(ours.epoch, ours.network.backbone.stages)
    for part in (ours, again):
        torch.manual_seed(1)
        for _ in range(4):
            part.advance()
    assert same(weights(ours.network), weights(again.network))


def test_clipping_is_applied_to_all_parameters():
    ours = loop(optimiser="sgd", lr=1.0, clipping=Clipping(norm=1e-3), schedule=Schedule(steps=40))
    before = weights(ours.network)
    ours.advance()
    learnt = dict(ours.network.named_parameters())
    moved = torch.cat([(learnt[name].detach() - before[name]).flatten() for name in learnt])
    assert float(moved.norm()) == pytest.approx(1e-3, rel=1e-3)


def test_mistakes():
    with pytest.raises(UserError, match="workers must be at least 0"):
        loop(workers=-1)
    banked = loop(bank=EmbeddingBank(48, DIM))
    with pytest.raises(UserError, match="needs a dataset that gives"):
        banked.advance()
    released = loop(unfreezing=Unfreezing(1, 1))
    with pytest.raises(UserError, match="needs a network with stages"):
        released.advance()
