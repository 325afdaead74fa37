"""Checkpoints: everything comes back as it was; whenever the process dies, `latest` names a whole checkpoint."""

import json
import math
import os
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookalike.errors import UserError
from lookalike.runs import checkpoint
from tests.cli.processes import Python

DTYPES = (
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
)


def equal(one, other):
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return isinstance(other, dict) and list(one) == list(other) and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    return type(one) is type(other) and one == other


def test_nested_state_comes_back_as_it_was(tmp_path):
    shared = torch.arange(6.0)
    state = {
        "optimiser": {"state": {0: {"step": torch.tensor(3.0)}, 12: {"m": shared}}, "betas": (0.9, 0.999)},
        "aliases": [shared, shared[2:4], shared.view(2, 3).T],
        "numbers": [None, -math.inf, math.inf, math.nan, 1, 1.0, True, "", "tensor", 10**20, 1e-300],
        "types": {str(kind): torch.ones(2, 3).to(kind) for kind in DTYPES},
        "odd": {"empty": torch.zeros(0, 4), "scalar": torch.tensor(5), "none": {}, "list": [], "tuple": ((),)},
        "look alike": {"tensor": "x", "value": {"mapping": []}, "list": ("tuple",)},
    }
    checkpoint.save(tmp_path / "new" / "place", 7, state)
    assert equal(checkpoint.load(tmp_path / "new" / "place"), state)
    assert checkpoint.step(tmp_path / "new" / "place") == 7


def test_paths_that_read_the_same_stay_apart(tmp_path):
    state = {"a": {"b": torch.tensor(1)}, "a/b": torch.tensor(2), "c": {1: torch.tensor(3), "1": torch.tensor(4)}}
    checkpoint.save(tmp_path, 1, state)
    assert equal(checkpoint.load(tmp_path), state)


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
tensors = st.lists(st.floats(width=32, allow_nan=False), max_size=3).map(torch.tensor)
keys = st.text(max_size=4) | st.integers(-3, 30)
states = st.recursive(
    leaves | tensors, lambda part: st.lists(part, max_size=3) | st.dictionaries(keys, part, max_size=3), max_leaves=8
)


@pytest.mark.plain  # checking shapes draws random numbers, which hypothesis forbids while it builds
@given(st.dictionaries(keys, states, max_size=3))
def test_any_state_comes_back(tmp_path_factory, state):
    folder = tmp_path_factory.mktemp("any")
    checkpoint.save(folder, 0, state)
    assert equal(checkpoint.load(folder), state)


def test_only_the_newest_is_kept(tmp_path):
    for step in (5, 10, 15):
        checkpoint.save(tmp_path, step, {"step": step})
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("step")) == [
        checkpoint.latest(tmp_path)
    ]
    assert checkpoint.load(tmp_path) == {"step": 15}


def test_without_a_checkpoint(tmp_path):
    assert not checkpoint.exists(tmp_path)
    assert checkpoint.step(tmp_path) == -1
    with pytest.raises(UserError, match="there is no checkpoint in"):
        checkpoint.load(tmp_path)


def refusal(work):
    """The one line with which something is refused; None: it is not."""
    try:
        work()
    except UserError as error:
        message = str(error)
    else:
        return None
    return message if "\n" not in message else "more than one line"


class Crash(BaseException):
    """Stands for a killed process: nothing of ours may catch it."""


# every way in which `save` touches the disk
OPERATIONS = [
    (checkpoint.shutil, "rmtree"),
    (Path, "mkdir"),
    (Path, "rename"),
    (Path, "replace"),
    (Path, "open"),
    (os, "fsync"),
    (os, "rename"),
    (os, "replace"),
    (os, "unlink"),
    (os, "rmdir"),
]


def crashing(monkeypatch, number, after, error, operations=OPERATIONS):
    """Let the `number`-th file operation of any kind fail, before or after it was done; the count of them all."""
    done = [0]

    def wrap(owner, name):
        real = getattr(owner, name)

        def wrapped(*given, **settings):
            if name == "open" and "w" not in (*given, *settings.values()):
                return real(*given, **settings)  # reading changes nothing
            done[0] += 1
            own = done[0]
            if own == number and not after:
                raise error
            if own != number:
                return real(*given, **settings)
            with suppress(OSError):  # such as that of removing what is not there
                result = real(*given, **settings)
                if name == "open":
                    result.close()
            raise error

        monkeypatch.setattr(owner, name, wrapped)

    for owner, name in operations:
        wrap(owner, name)
    return done


@pytest.mark.parametrize("second", [20, 10], ids=["a later step", "the same step again"])
@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_moment_of_saving_leaves_a_whole_checkpoint(tmp_path, second, after):
    """As of kill -9: the operation was done or not, and then nothing more happens."""
    old, new = {"weight": torch.zeros(3), "number": 1}, {"weight": torch.ones(3), "number": 2}
    for number in range(1, 60):
        folder = tmp_path / str(number)
        checkpoint.save(folder, 10, old)
        with pytest.MonkeyPatch.context() as patch:
            done = crashing(patch, number, after, Crash())
            try:
                checkpoint.save(folder, second, new)
            except Crash:
                finished = False
            else:
                finished = True
        state = checkpoint.load(folder)
        assert equal(state, old) or equal(state, new)
        checkpoint.save(folder, 30, new)  # and what was left lying about does not matter
        assert equal(checkpoint.load(folder), new)
        assert len(list(folder.glob("step-*"))) == 1
        if finished:
            assert equal(state, new)
            assert done[0] < number
            return
    pytest.fail("there are more operations than this test counts")


def test_an_error_of_the_disk_is_one_line_and_the_checkpoint_before_is_kept(tmp_path):
    old = {"weight": torch.zeros(3)}
    seen = 0
    for number in range(1, 30):
        folder = tmp_path / str(number)
        checkpoint.save(folder, 10, old)
        with pytest.MonkeyPatch.context() as patch:
            # what is told to ignore errors, does
            operations = [(owner, name) for owner, name in OPERATIONS if name != "rmtree"]
            crashing(patch, number, False, OSError(28, "No space left on device"), operations)
            message = refusal(lambda folder=folder: checkpoint.save(folder, 20, {"weight": torch.ones(3)}))
        if message is not None:
            seen += 1
            assert "No space left on device" in message
            assert "free some space" in message
            assert f"the last whole checkpoint is {checkpoint.latest(folder)}" in message
        checkpoint.load(folder)
    assert seen > 3


FULL = """
import resource, signal, sys, torch
from lookalike.errors import UserError
from lookalike.runs import checkpoint
from pathlib import Path
folder = Path(sys.argv[1])
checkpoint.save(folder, 1, {"weight": torch.zeros(10)})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then a write fails with an error, as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    checkpoint.save(folder, 2, {"weight": torch.zeros(1_000_000)})
except UserError as error:
    print(error)
print(checkpoint.step(folder), len(checkpoint.load(folder)["weight"]), sorted(p.name for p in folder.iterdir()))
"""


def test_a_file_that_does_not_fit_leaves_the_checkpoint_before(tmp_path):
    code, output = Python(FULL, tmp_path).ended()
    assert code == 0, output
    line, kept = output.splitlines()
    assert line.startswith("cannot save the checkpoint")
    assert "the last whole checkpoint is step-00000001" in line
    assert kept == "1 10 ['latest', 'step-00000001']"


def unsealed(place):
    """The checkpoint as version 0.2.0 wrote it: without checksums."""
    (place / "checksums").unlink()
    plain = json.loads((place / "state.json").read_text())
    (place / "state.json").write_text(json.dumps(plain | {"format": checkpoint.UNCHECKED}))


def damages():
    def cut(name, share):
        def damage(place):
            file = place / name
            content = file.read_bytes()
            file.write_bytes(content[: int(share * len(content))])

        return damage

    def text(name, content):
        return lambda place: (place / name).write_text(content)

    yield from (cut("state.safetensors", share) for share in (0, 0.01, 0.5, 0.99))
    yield from (cut("state.json", share) for share in (0, 0.5, 0.99))
    for content in ("[]", "3", "null", '{"value": 3}', "{}"):
        yield text("state.json", content)
    for state in ("3", "null", '{"mapping": 3}', '{"mapping": [["a", {"tensor": "x"}]]}', "{}"):
        yield text("state.json", f'{{"format": {checkpoint.UNCHECKED}, "state": {state}}}')
    yield lambda place: (place / "state.json").write_bytes(b"\xff\xfe")
    yield lambda place: (place / "state.json").unlink()
    yield lambda place: (place / "state.safetensors").unlink()
    for content in ("", "step-99999999", "nonsense", "../..", "\0"):
        yield text("../latest", content)


@pytest.mark.parametrize("damage", list(damages()))
@pytest.mark.parametrize("sealed", [True, False])
def test_damage_is_refused_with_one_line(tmp_path, damage, sealed):
    checkpoint.save(tmp_path, 3, {"weight": torch.arange(1000.0), "more": [1, 2]})
    if not sealed:
        unsealed(tmp_path / checkpoint.latest(tmp_path))
    damage(tmp_path / checkpoint.latest(tmp_path))
    with pytest.raises(UserError, match=rf"^the checkpoint {tmp_path}\S* is damaged \(.*\): start again") as raised:
        checkpoint.load(tmp_path)
    assert "\n" not in str(raised.value)
    assert "damaged" in (refusal(lambda: checkpoint.step(tmp_path)) or "damaged")


def test_nothing_is_pickled(tmp_path):
    checkpoint.save(tmp_path, 3, {"weight": torch.arange(3.0)})
    place = tmp_path / checkpoint.latest(tmp_path)
    assert {file.name for file in place.iterdir()} == {"state.json", "state.safetensors", "checksums"}
    json.loads((place / "state.json").read_text())


def test_checksums_cannot_be_left_out(tmp_path):
    checkpoint.save(tmp_path, 3, {"weight": torch.arange(3.0)})
    file = tmp_path / checkpoint.latest(tmp_path) / "checksums"
    file.write_text("")
    assert "does not match" in refusal(lambda: checkpoint.load(tmp_path))
    file.unlink()
    assert "checksums are gone" in refusal(lambda: checkpoint.load(tmp_path))


def test_a_flipped_bit_anywhere_is_noticed(tmp_path):
    state = {"weight": torch.randn(40), "moments": {"step": torch.tensor(7)}, "seconds": 1.5, "names": ["a", "b"]}
    checkpoint.save(tmp_path, 3, state)
    place = tmp_path / checkpoint.latest(tmp_path)
    for file in (*place.iterdir(), tmp_path / "latest"):
        whole = file.read_bytes()
        for position in range(len(whole)):
            bit = 1 << position % 8
            file.write_bytes(whole[:position] + bytes([whole[position] ^ bit]) + whole[position + 1 :])
            for read in (checkpoint.load, checkpoint.check_whole):
                line = refusal(lambda read=read: read(tmp_path))
                assert line is not None, f"bit {bit} of byte {position} of {file.name} changed and nobody noticed"
                assert "damaged" in line
                assert line != "more than one line"
        file.write_bytes(whole)
    assert equal(checkpoint.load(tmp_path), state)


def test_the_first_weights_of_a_run_are_checked_as_well(tmp_path):
    tensors = {"a.weight": torch.randn(30), "b": torch.arange(4)}
    checkpoint.save_tensors(tmp_path / "start", tensors)
    assert equal(checkpoint.load_tensors(tmp_path / "start"), tensors)
    file = tmp_path / "start" / "state.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 64
    file.write_bytes(content)
    assert "damaged" in refusal(lambda: checkpoint.load_tensors(tmp_path / "start"))


def test_what_version_0_2_0_wrote_can_be_resumed(tmp_path):
    from safetensors.torch import save_file

    state = {"weight": torch.randn(30), "number": 3}
    checkpoint.save(tmp_path, 3, state)
    unsealed(tmp_path / checkpoint.latest(tmp_path))
    checkpoint.check_whole(tmp_path)
    assert equal(checkpoint.load(tmp_path), state)
    save_file({"a": torch.ones(2)}, tmp_path / "start.safetensors")
    assert equal(checkpoint.load_tensors(tmp_path / "start"), {"a": torch.ones(2)})
    assert "damaged" in refusal(lambda: checkpoint.load_tensors(tmp_path / "nothing"))


def test_every_file_is_on_the_disk_before_the_checkpoint_has_its_name(tmp_path, monkeypatch):
    """Without that, a power cut leaves a folder of the right name with empty files."""
    synced, real_sync, real_rename = set(), os.fsync, Path.rename

    def sync(handle):
        synced.add(os.fstat(handle).st_ino)
        real_sync(handle)

    def rename(path, target):
        if target.name.startswith("step-"):
            inner = {file.name: file.stat().st_ino for file in path.iterdir()} | {"folder": path.stat().st_ino}
            missing.append(sorted(name for name, inode in inner.items() if inode not in synced))
        return real_rename(path, target)

    missing = []
    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "rename", rename)
    checkpoint.save(tmp_path, 3, {"weight": torch.arange(3.0)})
    assert missing == [[]]


def test_the_checksums_are_those_of_sha256sum(tmp_path):
    from hashlib import sha256

    checkpoint.save(tmp_path, 3, {"weight": torch.arange(3.0)})
    place = tmp_path / checkpoint.latest(tmp_path)
    lines = [line.split("  ") for line in (place / "checksums").read_text().splitlines()]
    assert {name: digest for digest, name in lines} == {
        name: sha256((place / name).read_bytes()).hexdigest() for name in ("state.json", "state.safetensors")
    }
