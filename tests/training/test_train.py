"""A run from its first step to its end: validation, the best weights, stopping, resuming, the time budget."""

import pytest
import torch

from lookalike import losses, miners
from lookalike.errors import UserError
from lookalike.evaluation import evaluate
from lookalike.runs import checkpoint
from lookalike.training import Objective, Plan, Schedule, StoppedError, train
from lookalike.training.memory import CrossBatchMemory
from lookalike.training.pace import Pace
from tests.training.scenes import DIM, loop, same, weights


def scripted(values):
    """A validation that says what it is told to say."""
    said = iter(values)
    return lambda: {"map@r": next(said), "recall@1": 0.0}


def test_validated_at_the_start_every_few_steps_and_at_the_end():
    log = []
    train(loop(), Plan(10, validate_every=4, log_every=3), validate=scripted([0.1, 0.2, 0.3, 0.4]), tell=log.append)
    assert [event["step"] for event in log if event["event"] == "validation"] == [0, 4, 8, 10]
    assert [event["step"] for event in log if event["event"] == "step"] == [3, 6, 9, 10]
    assert [event["event"] for event in log][-1] == "end"


def test_the_best_weights_are_left_in_the_network():
    ours, kept = loop(), {}

    def validate():
        kept[ours.step] = weights(ours.network)
        return {"map@r": {0: 0.1, 4: 0.5, 8: 0.9, 12: 0.3}[ours.step]}

    ending = train(ours, Plan(12, validate_every=4), validate=validate)
    assert (ending.best_step, ending.best, ending.steps) == (8, {"map@r": 0.9}, 12)
    assert same(weights(ours.network), kept[8])


def test_it_stops_when_validation_no_longer_improves():
    ending = train(loop(), Plan(100, validate_every=2, patience=3), validate=scripted([0.1, 0.5, 0.4, 0.5, 0.3, 0.9]))
    assert (ending.steps, ending.best_step) == (8, 2)
    assert ending.why == "no better validation in 3 rounds"


def test_plateau_listens_to_validation():
    ours = loop(schedule=Schedule("plateau", patience=1, gamma=0.5), lr=0.01)
    train(ours, Plan(8, validate_every=1), validate=scripted([0.5] + [0.1] * 8))
    assert ours.plateau.reductions == 4
    assert ours.optimiser.param_groups[0]["lr"] < 0.01


def with_everything():
    """Random tuples, a memory, learnt boundaries, momentum, dropout, running statistics."""
    miner = miners.DistanceWeighted(generator=torch.Generator().manual_seed(0))
    memory = CrossBatchMemory(36, DIM)
    goal = Objective(losses.Margin(classes=6), miner, memory=memory, memory_start=3)
    return loop(objective=goal, generators={"miner": miner.generator})


def judged(ours):
    def validate():
        with torch.no_grad():
            points, labels = ours.dataset.points, ours.dataset.labels
            return evaluate(ours.network.eval()(points), labels, metrics="map@r recall@1")

    return validate


@pytest.mark.parametrize("stops", [[1], [4], [5, 9], [1, 2, 3, 4, 5, 6, 7]])
def test_stopped_and_resumed_gives_the_same_bits(tmp_path, stops):
    plan = Plan(14, validate_every=4, log_every=1, seed=5)
    whole, log = with_everything(), []
    ending = train(whole, plan, validate=judged(whole), tell=log.append)
    again = []
    for stop in stops:
        ours = with_everything()
        torch.manual_seed(stop)  # whatever the process did before plays no part
        with pytest.raises(StoppedError, match=f"stopped after step {stop} of 14"):
            train(
                ours,
                plan,
                validate=judged(ours),
                folder=tmp_path,
                tell=again.append,
                stop=lambda ours=ours, stop=stop: ours.step >= stop,
            )
    ours = with_everything()
    resumed = train(ours, plan, validate=judged(ours), folder=tmp_path, tell=again.append)
    assert same(weights(ours.network), weights(whole.network))
    assert same(weights(ours.objective), weights(whole.objective))
    assert (resumed.best_step, resumed.best, resumed.why) == (ending.best_step, ending.best, ending.why)

    def values(events):
        return [(event["step"], event["loss"]) for event in events if event["event"] == "step"]

    assert values(again) == values(log)


def test_checkpoints_can_be_seldom_but_a_stop_is_saved(tmp_path):
    seldom, often = (Plan(6, validate_every=2, save_every=seconds) for seconds in (1e6, 0.0))
    ours, steps = loop(), []
    with pytest.raises(StoppedError):
        train(
            ours,
            seldom,
            validate=judged(ours),
            folder=tmp_path,
            stop=lambda: ours.step >= 5,
            tell=lambda _: steps.append(checkpoint.step(tmp_path)),
        )
    assert set(steps) == {-1}
    assert checkpoint.step(tmp_path) == 5
    again, whole = loop(), loop()
    train(again, seldom, validate=judged(again), folder=tmp_path)
    assert checkpoint.step(tmp_path) == 5
    train(whole, often, validate=judged(whole), folder=tmp_path / "often")
    assert checkpoint.step(tmp_path / "often") == 6
    assert same(weights(again.network), weights(whole.network))


def test_a_finished_run_resumed_is_only_told_again(tmp_path):
    ours = loop()
    first = train(ours, Plan(6, validate_every=3), validate=judged(ours), folder=tmp_path)
    again = loop()
    second = train(again, Plan(6, validate_every=3), validate=judged(again), folder=tmp_path)
    assert same(weights(ours.network), weights(again.network))
    assert (first.best, first.steps) == (second.best, second.steps)


def test_what_is_named_wrong_stays_named_over_a_stop(tmp_path):
    log = []
    flat = {"lr": 1e-9, "optimiser": "sgd"}

    def same_for_all():
        ours = loop(losses.Triplet(), **flat)
        ours.network.layers[-1].weight.data.zero_()
        return ours

    ours = same_for_all()
    with pytest.raises(StoppedError):
        train(ours, Plan(8, log_every=1), folder=tmp_path, tell=log.append, stop=lambda: ours.step >= 4)
    train(same_for_all(), Plan(8, log_every=1), folder=tmp_path, tell=log.append)
    assert [event["kind"] for event in log if event["event"] == "health"].count("collapse") == 1


def test_a_time_budget_is_used_and_planned_again():
    """The first plan is far off; the schedule and the end follow what steps really take."""
    log, kept, ours = [], {}, loop(steps=100_000)
    pace = Pace(keep=kept.__setitem__)
    ending = train(ours, Plan(100_000, seconds=1.5, flexible=True), tell=log.append, pace=pace)
    plans = [event for event in log if event["event"] == "plan"]
    assert kept == {event["step"]: event["steps"] for event in plans}
    assert 0 < ending.steps < 100_000
    assert plans
    assert ours.schedule.steps == plans[-1]["steps"]
    assert 0.75 < ending.seconds < 6


def test_the_time_spent_before_a_stop_counts(tmp_path):
    spent = []
    for until in (3, 6):
        ours = loop(steps=100_000)
        with pytest.raises(StoppedError):
            train(ours, Plan(100_000), folder=tmp_path, stop=lambda ours=ours, until=until: ours.step >= until)
        spent.append(checkpoint.load(tmp_path)["course"]["seconds"])
    assert 0 < spent[0] < spent[1]
    state = checkpoint.load(tmp_path)
    state["course"]["seconds"] = 5000.0
    checkpoint.save(tmp_path, 6, state)
    ending = train(loop(steps=100_000), Plan(100_000, seconds=4000.0), folder=tmp_path)
    assert ending.why == "the time budget ended it at step 6 of 100000"
    assert 5000 < ending.seconds < 6000


def test_steps_that_were_given_are_kept_beside_a_time_budget():
    ours, log = loop(steps=12), []
    assert train(ours, Plan(12, seconds=1e6), tell=log.append).steps == 12
    assert not [event for event in log if event["event"] == "plan"]


def test_a_resumed_run_follows_what_it_had_planned(tmp_path):
    """Plans that were made at steps 2 and 8 are followed at these steps, however fast the machine is now."""
    made, kept, ends = {2: 30, 8: 20}, {}, []
    for name, stops in {"straight": [9], "resumed": [3, 9]}.items():
        for stop in stops:
            step = checkpoint.step(tmp_path / name) if (tmp_path / name).exists() else 0
            ours, log = loop(schedule=Schedule("cosine", steps=30 if step > 2 else 400)), []
            with pytest.raises(StoppedError):
                train(
                    ours,
                    Plan(ours.schedule.steps, seconds=1e6, flexible=True),
                    folder=tmp_path / name,
                    tell=log.append,
                    stop=lambda ours=ours, stop=stop: ours.step >= stop,
                    pace=Pace(planned={at: steps for at, steps in made.items() if at > step}, keep=kept.__setitem__),
                )
            assert not kept
            told = {event["step"]: event["steps"] for event in log if event["event"] == "plan"}
            assert told == {at: steps for at, steps in made.items() if step < at <= stop}
        assert ours.schedule.steps == 20
        ends.append(weights(ours.network))
    assert same(*ends)


def test_training_leaves_the_callers_random_numbers_alone():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    train(loop(), Plan(3))
    assert torch.equal(torch.rand(3), expected)


def test_mistakes(tmp_path):
    with pytest.raises(UserError, match=r"validation does not measure 'map@r': it gives recall@1"):
        train(loop(), Plan(3), validate=lambda: {"recall@1": 0.5})
    for key in ("steps", "validate_every", "log_every"):
        with pytest.raises(UserError, match=f"{key} must be at least 1, not 0"):
            Plan(**{"steps": 1, key: 0})
    with pytest.raises(UserError, match="no time left"):
        Plan(1, seconds=-1)
    assert not checkpoint.exists(tmp_path)
