"""`lookalike embed --shards`: parts, workers, processes stopped and killed; every image once, the same as by one."""

import json
import signal

import pytest

from tests.cli.photos import folder
from tests.cli.processes import Death
from tests.features import scenes

EMBED = ("embed", "--backend", "torch")
WORK = "lookalike.features.shard_work"


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
    lookalike("embed", model, photos, "--out", tmp_path / "one.npz", "--json").refused("--json is for shards")
    lookalike("embed", model, photos, "--out", out, "--part", "4/3").refused("such as 3/40, not '4/3'")
    lookalike("embed", model, photos, "--out", out, "--on", "x", "--workers", 2).refused("leave out --workers, or --on")
    lookalike("embed", "--out", tmp_path, "--status").refused("there are no shards in")
    lookalike("index", tmp_path / "other", out, "--out", tmp_path / "index").refused("another model")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["interrupt", "terminate"])
def test_a_stopped_command_says_how_to_continue(lookalike, model, photos, tmp_path, number):
    out = tmp_path / "shards"
    words = (*EMBED, model, photos, "--out", out)
    ended = lookalike(*words, "--shards", 20, death=Death(WORK, "encode_rows", 3, number=number))
    assert (ended.code, ended.out) == (130, "")
    assert "the same command continues" in ended.error
    kept = shards(out)
    assert len(kept) == 2
    assert "2 of 20 shards" in lookalike("embed", "--out", out, "--status").out
    assert lookalike(*words).code == 0
    assert len(shards(out)) == 20
    assert shards(out).items() >= kept.items()


DEATHS = (
    Death(WORK, "encode_rows", 2),
    Death(WORK, "encode_rows", 1, after=True),
    Death("numpy", "savez_compressed", 2, after=True),  # the shard is half written
    Death("lookalike.files", "sync_folder", 3),  # it has its name, which may not be on the disk
)


def test_killed_parts_leave_no_trace(lookalike, model, photos, tmp_path):
    """Parts die at chosen moments; the same commands make what they left, and all is equal to one process's."""
    out, whole = tmp_path / "shards", tmp_path / "whole"
    words = (*EMBED, model, photos, "--shards", 20, "--out")
    assert lookalike(*words, whole).code == 0
    parts = [f"{number}/4" for number in range(1, 5)]
    killed = [
        lookalike.start(*words, out, "--part", part, death=death) for part, death in zip(parts, DEATHS, strict=True)
    ]
    assert [each.end().code for each in killed] == [-signal.SIGKILL] * 4
    assert len(shards(out)) < 20
    again = [lookalike.start(*words, out, "--part", part) for part in parts]
    assert [each.end().code for each in again] == [0] * 4
    assert shards(out) == shards(whole)
    assert not [path for path in out.iterdir() if path.name.startswith(".")]
