"""The cache of vectors under kill -9, several processes and damage."""

import numpy as np
import pytest
import torch

from lookalike.errors import UserError
from lookalike.features import extract, store
from tests.cli.processes import Python
from tests.features import scenes

ALL = 10**9


def start(cache, die_after=ALL, **variables):
    program = f"from tests.features.scenes import main; main({die_after})"
    return Python(program, LOOKALIKE_CACHE=cache, **variables)


def ended(child):
    code, output = child.ended()
    return code, (output.split() or [""])[-1]


def digests(file):
    with np.load(file) as arrays:
        return arrays["digests"]


@pytest.fixture
def expected(monkeypatch, tmp_path, cache):
    """The vectors, computed in another cache."""
    monkeypatch.setenv("LOOKALIKE_CACHE", str(tmp_path / "another"))
    vectors = extract(scenes.model(), scenes.dataset())
    monkeypatch.setenv("LOOKALIKE_CACHE", str(cache))
    return vectors


def test_what_a_killed_process_had_finished_is_not_computed_again(cache, expected):
    assert ended(start(cache, die_after=70))[0] == -9
    files = list(cache.rglob("*.npz"))
    assert files
    kept = sum(len(digests(file)) for file in files)
    assert 0 < kept < scenes.ROWS
    code, count = ended(start(cache))
    assert (code, int(count)) == (0, scenes.ROWS - kept)
    assert torch.equal(extract(scenes.model(), scenes.dataset()), expected)
    assert not list(cache.rglob("*.partial"))


def test_processes_share_the_work(cache, expected, tmp_path):
    (tmp_path / "meet").mkdir()
    children = [start(cache, MEET=tmp_path / "meet") for _ in range(2)]
    outcomes = [ended(child) for child in children]
    assert [code for code, _ in outcomes] == [0, 0]
    counts = [int(count) for _, count in outcomes]
    assert sum(counts) == scenes.ROWS, "no vector is computed twice"
    assert min(counts) > 0, "both do some of the work"
    calls = []
    vectors = extract(scenes.model(), scenes.dataset(), progress=lambda *done: calls.append(done))
    assert torch.equal(vectors, expected)
    assert not calls


@pytest.mark.parametrize("damage", ["one byte", "cut off", "empty", "foreign"])
def test_damaged_files_are_computed_again(cache, expected, damage):
    extract(scenes.model(), scenes.dataset())
    victim = sorted(cache.rglob("*.npz"))[0]
    content = victim.read_bytes()
    lost = len(digests(victim))
    middle = len(content) // 2
    broken = {
        "one byte": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "cut off": content[:middle],
        "empty": b"",
        "foreign": b"PK\x03\x04 is how a zip file begins",
    }
    victim.write_bytes(broken[damage])
    calls = []
    vectors = extract(scenes.model(), scenes.dataset(), progress=lambda *done: calls.append(done))
    assert torch.equal(vectors, expected)
    assert calls[-1] == (lost, lost)
    calls.clear()
    extract(scenes.model(), scenes.dataset(), progress=lambda *done: calls.append(done))
    assert not calls


def test_an_interrupt_keeps_the_blocks_before_it(monkeypatch, expected):
    monkeypatch.setattr(store, "BLOCK", 16)

    def progress(done, _):
        if done > 80:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract(scenes.model(), scenes.dataset(), progress=progress)
    calls = []
    vectors = extract(scenes.model(), scenes.dataset(), progress=lambda *done: calls.append(done))
    assert torch.equal(vectors, expected)
    assert 0 < calls[-1][1] <= scenes.ROWS - 64


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("LOOKALIKE_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match="LOOKALIKE_CACHE"):
        extract(scenes.model(), scenes.dataset())
