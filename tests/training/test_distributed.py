"""Two processes over gloo do what one does: the same losses, gradients and parameters, to 1e-9 in float64."""

import socket

import pytest
import torch

from lookalike.processes import Ranks
from lookalike.runs import checkpoint
from tests.cli.processes import Python
from tests.training import processes


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def together(folder):
    """Two processes, waited for: their exit codes and what they said."""
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "WORLD_SIZE": 2}
    program = "from tests.training.processes import main; main()"
    children = [Python(program, folder, RANK=rank, LOCAL_RANK=rank, **shared) for rank in range(2)]
    codes, outputs = zip(*(child.ended() for child in children), strict=True)
    return list(codes), outputs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What two processes left behind: they compute, stop and, at last, one of them is killed."""
    place = tmp_path_factory.mktemp("two")
    codes, errors = together(place)
    if "EADDRINUSE" in "".join(errors):  # somebody took the port between its choice and its use
        codes, errors = together(place)
    assert codes == [2, -9], errors
    return place


@pytest.fixture(scope="module")
def results(folder):
    """What two processes saw, and one alone."""
    both = [torch.load(folder / f"rank{rank}.pt") for rank in range(2)]
    alone = {f"{name}/{part}": value for name in processes.SCENES for part, value in processes.steps(name).items()}
    alone |= {f"exchanges/{part}": value for part, value in processes.exchanges(Ranks()).items()}
    return both, alone


@pytest.mark.parametrize("scene", processes.SCENES)
def test_losses_gradients_and_parameters_are_those_of_one_process(results, scene):
    """A pair loss, a mined triplet loss (same draws), proxies, a memory, CCP, batch normalisation, chunks."""
    both, alone = results
    names = [name for name in alone if name.startswith(f"{scene}/")]
    assert len(names) > 20
    for name in names:
        for seen in both:
            assert torch.allclose(seen[name], alone[name], atol=1e-9), name
    assert any(alone[name].any() for name in names if ".gradient." in name)


def test_what_is_spread_over_processes_is_the_whole(results):
    both, alone = results
    for seen in both:
        assert torch.allclose(seen["exchanges/spread"], alone["exchanges/spread"], atol=1e-12)
        assert torch.equal(seen["exchanges/figures"], alone["exchanges/figures"])
        assert int(seen["exchanges/told"]) == 17
        assert seen["exchanges/any"].tolist() == [True, False]


def test_a_mixed_batch_is_the_same_for_all(results):
    one, other = results[0]
    assert torch.equal(one["mixed/loss"], other["mixed/loss"])
    assert torch.equal(one["mixed/labels"], other["mixed/labels"])


def test_a_run_of_two_goes_on_alone(folder, tmp_path):
    """One wish to stop stops all; the checkpoint fits any number of processes."""
    assert [(folder / f"stopped{rank}").read_text() for rank in range(2)] == ["stopped after step 3 of 6"] * 2
    assert checkpoint.step(folder / "resumed" / "checkpoint") == 3
    one, _ = processes.run(folder / "resumed", 6)
    straight, ending = processes.run(tmp_path, 6)
    assert ending.steps == 6
    for name, value in straight.items():
        assert torch.allclose(value, one[name], atol=1e-9), name


def test_a_killed_process_stops_the_run_with_a_message(folder):
    message = (folder / "message").read_text()
    assert message.startswith("another process of this run is gone (")
    assert "--resume" in message
    assert "\n" not in message
    assert checkpoint.load(folder / "killed" / "checkpoint")["loop"]["step"] >= 0
