"""`lookalike embed --shards`: workers started, stopped, killed; every image once, the same as by one worker."""

import json
import random
import signal

import pytest

from lookalike.features.claims import Claims
from tests.cli.photos import folder
from tests.cli.processes import Death, Lookalike
from tests.features import scenes

EMBED = ("embed", "--backend", "torch")
WORKER, CLAIM = "lookalike.features.shard_worker", "lookalike.features.claims:Claims"


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    place = tmp_path_factory.mktemp("model") / "model"
    scenes.model().save(place)
    return place


def shards(out):
    return {path.name: path.read_bytes() for path in sorted(out.glob("*.npz"))}


def test_from_photos_to_an_index_and_a_result(lookalike, model, photos, tmp_path):
    out = tmp_path / "shards"
    first = lookalike(*EMBED, model, photos, "--out", out, "--shards", 5)
    assert first.code == 0, first.error
    assert first.out.startswith(f"72 images in 5 shards in {out}. Search them with: lookalike index")
    before = shards(out)
    again = lookalike(*EMBED, model, photos, "--out", out, "--json")
    assert shards(out) == before
    content = json.loads(again.out)
    assert (content["done"], content["finished"], content["complete"], content["unreadable"]) == (72, 5, True, [])
    assert lookalike("embed", "--out", out, "--status").out == "72 of 72 images, 5 of 5 shards\n"
    made = lookalike("index", model, out, "--out", tmp_path / "shop.index", "--json")
    assert json.loads(made.out)["updates"][0]["added"] == 72, made.error
    brought = lookalike("index", model, photos, "--out", tmp_path / "shop.index", "--json")
    assert json.loads(brought.out)["updates"][0]["unchanged"] == 72
    measured = json.loads(lookalike("evaluate", out, "--metrics", "recall@1", "--json").out)["metrics"]
    assert measured["recall@1"] > 0.5


def test_refusals_are_one_line(lookalike, model, photos, tmp_path):
    out = tmp_path / "shards"
    assert lookalike(*EMBED, model, photos, "--out", out, "--shards", 3).code == 0
    scenes.model(seed=1).save(tmp_path / "other")
    lookalike("embed", tmp_path / "other", photos, "--out", out).refused("another model")
    other = folder(tmp_path / "few", classes=2, each=2)
    lookalike("embed", model, other, "--out", out).refused("other images (72 of small photos; here are 4 of few)")
    lookalike("embed", model, photos, "--out", out, "--shards", 4).refused("leave out --shards")
    lookalike("embed", "--out", out).refused("give a model and images")
    for option in (("--json",), ("--lease", 5)):
        lookalike("embed", model, photos, "--out", tmp_path / "one.npz", *option).refused(f"{option[0]} is for shards")
    lookalike("embed", "--out", tmp_path, "--status").refused("there are no shards in")
    lookalike("index", tmp_path / "other", out, "--out", tmp_path / "index").refused("another model")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["interrupt", "terminate"])
def test_a_stopped_worker_says_how_to_continue(lookalike, model, photos, tmp_path, number):
    out = tmp_path / "shards"
    running = lookalike.start(*EMBED, model, photos, "--out", out, "--shards", 4, "--lease", 1e6)
    running.wait_for(lambda: (out / "claims").is_dir())
    other = Claims(out / "claims")
    other.owner["host"] = "another machine"
    held = next((name for name in ("000000", "000001", "000002", "000003") if other.take(name)), None)
    running.wait_for(lambda: len(shards(out)) == 3)  # it waits for the fourth, unless it was too fast for us
    status = lookalike("embed", "--out", out, "--status").out
    if held is not None and running.process.is_alive():
        assert f"shard {held}: process {other.owner['process']} on another machine, 0 images done" in status
        running.signal(number)
        ended = running.end()
        assert (ended.code, ended.out) == (130, "")
        assert "the same command continues" in ended.error
        other.release(held)
    assert lookalike(*EMBED, model, photos, "--out", out).code == 0
    assert len(shards(out)) == 4


DEATHS = (
    Death(CLAIM, "take"),
    Death(CLAIM, "take", 2, after=True),
    Death(WORKER, "encode_rows", 2),
    Death(WORKER, "encode_rows", 1, after=True),
    Death("numpy", "savez_compressed", 2, after=True),  # the shard is half written
    Death("lookalike.files", "sync_folder", 3),  # it has its name, which may not be on the disk
    Death(CLAIM, "release", 1),
    Death("os", "link", 2, after=True),  # a claim, and its owner does not know yet
)


@pytest.mark.slow
def test_killed_workers_leave_no_trace(model, tmp_path):
    """Eight workers die at chosen moments, two more at random ones; the rest is made by others, and equal to one's."""
    chance = random.Random(0)
    photos, out, whole = folder(tmp_path / "photos", classes=40, each=5), tmp_path / "shards", tmp_path / "whole"
    program = Lookalike(tmp_path)
    words = (*EMBED, model, photos, "--shards", 50, "--out")
    assert program(*words, whole).code == 0
    for four in (DEATHS[:4], DEATHS[4:]):
        workers = [program.start(*words, out, death=death) for death in four]
        assert [worker.end().code for worker in workers] == [-signal.SIGKILL] * 4  # no shard is left before they die
    assert len(shards(out)) < 50
    workers = [program.start(*words, out) for _ in range(4)]
    for worker in workers[:2]:
        enough = chance.randint(len(shards(out)), 50)
        worker.wait_for(lambda enough=enough: len(shards(out)) >= enough)
        worker.process.kill()
        assert worker.end().code in (0, -signal.SIGKILL)
    again = [program.start(*words, out) for _ in range(2)]
    for worker in (*workers[2:], *again):
        ended = worker.end()
        assert ended.code == 0, ended.error
    assert shards(out) == shards(whole)
    assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in whole.iterdir())
    assert not list((out / "claims").glob("0*"))
