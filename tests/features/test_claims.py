"""Claims end with their owners: killed, silent, or finished. No clock but one's own is asked."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from lookalike import files
from lookalike.errors import UserError
from lookalike.features import claims
from lookalike.features.claims import Claims
from lookalike.files import write_once


@pytest.fixture
def clock(monkeypatch):
    """The watch of this process; other machines have others."""
    now = [1000.0]
    monkeypatch.setattr(claims.time, "monotonic", lambda: now[0])
    return now


def elsewhere(folder, lease=60.0):
    """A worker on another machine."""
    worker = Claims(folder, lease)
    worker.owner["host"] = "another machine"
    return worker


def test_one_of_many_takes_a_claim(tmp_path):
    workers = [Claims(tmp_path) for _ in range(16)]
    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(lambda worker: worker.take("7"), workers))
    assert sum(outcomes) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["7"]


def test_a_silent_worker_loses_its_claim_and_a_renewed_one_keeps_it(tmp_path, clock):
    owner, other = elsewhere(tmp_path), Claims(tmp_path, 60.0)
    assert owner.take("7")
    for _ in range(20):
        clock[0] += 50
        owner.renew("7", 3)
        assert not other.take("7")
    clock[0] += 61  # since the last look, at which it had changed
    assert other.take("7")
    owner.renew("7", 9)  # it was only suspended: the claim is not its own any more
    owner.release("7")
    assert json.loads((tmp_path / "7").read_text())["token"] == other.owner["token"]


def test_a_lease_begins_with_the_first_look(tmp_path, clock):
    assert elsewhere(tmp_path).take("7")
    os.utime(tmp_path / "7", (0, 0))  # a clock that is wrong by half a century
    clock[0] += 1e6
    other = Claims(tmp_path, 60.0)
    assert not other.take("7")
    clock[0] += 59
    assert not other.take("7")
    clock[0] += 2
    assert other.take("7")


def test_renewals_are_written_now_and_then(tmp_path, clock):
    owner = elsewhere(tmp_path)
    assert owner.take("7")
    before = (tmp_path / "7").read_text()
    owner.renew("7", 1)
    assert (tmp_path / "7").read_text() == before
    clock[0] += 6
    owner.renew("7", 2)
    assert json.loads((tmp_path / "7").read_text())["done"] == 2


def test_the_claim_of_a_process_that_is_gone_is_free_at_once(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(timeout=300)
    killed = Claims(tmp_path)
    killed.owner["process"] = ended.pid
    assert killed.take("7")
    assert Claims(tmp_path, 1e9).take("7")


@pytest.mark.parametrize("content", ["", "{", "[1]", "[" * 9000, '{"host": 3}', '{"process": -1}', "\udce9"])
def test_a_damaged_claim_ends_with_its_lease(tmp_path, clock, content):
    (tmp_path / "7").write_bytes(content.encode("utf-8", "surrogateescape"))
    worker = Claims(tmp_path, 60.0)
    assert not worker.take("7")
    clock[0] += 61
    assert worker.take("7")


def test_without_hard_links_the_first_writer_wins_too(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(files.os, "link", refuse)
    assert write_once(tmp_path / "note", "first")
    assert not write_once(tmp_path / "note", "second")
    assert (tmp_path / "note").read_text() == "first"
    assert Claims(tmp_path).take("7")
    assert not Claims(tmp_path).take("7")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["7", "note"]


def test_a_folder_that_is_gone_is_one_line(tmp_path):
    with pytest.raises(UserError, match="cannot write"):
        Claims(tmp_path / "gone").take("7")
