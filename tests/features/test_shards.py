"""Shards: every image once, whoever makes them and however often they are interrupted."""

import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from lookalike.data import arrays, folder, table
from lookalike.data.formats.unlabelled import unlabelled
from lookalike.errors import UserError
from lookalike.features import Shards, embed, embed_shards, status
from lookalike.workers import Part, Workers
from tests.features import scenes

COUNT = 30


@pytest.fixture
def photos(tmp_path):
    for row, image in enumerate(scenes.images(COUNT)):
        place = tmp_path / "photos" / f"class {row // 10}" / f"{row:02d}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place)
    return tmp_path / "photos"


def work(data, out, shards=None, **settings):
    return embed_shards(scenes.model(), data, out, shards, backend="torch", **settings)


def contents(out):
    return {path.name: path.read_bytes() for path in sorted(out.glob("*.npz"))}


def test_every_image_once_with_all_that_is_known_of_it(photos, tmp_path):
    data = folder(photos)
    made = work(data, tmp_path / "out", 7)
    joined = made.joined()
    expected = embed(scenes.model(), data)
    torch.testing.assert_close(torch.from_numpy(joined["embeddings"]), expected, atol=1e-6, rtol=0)
    names = [data.images.name(row) for row in range(COUNT)]
    assert joined["ids"].tolist() == [f"photos/{name}" for name in names]
    assert joined["paths"].tolist() == [str(photos / name) for name in names]
    assert joined["labels"].tolist() == [name.split("/")[0] for name in names]
    assert joined["file_size"].tolist() == [(photos / name).stat().st_size for name in names]
    assert joined["file_time"].tolist() == [(photos / name).stat().st_mtime_ns for name in names]
    assert len(set(joined["file_digest"].tolist())) == COUNT
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *(f"{n:06d}.npz" for n in range(7)),
        "shards.json",
    ]


@pytest.mark.parametrize("shards", [1, 4, 29, COUNT, 1000])
def test_vectors_do_not_depend_on_the_number_of_shards(photos, tmp_path, shards):
    one = work(folder(photos), tmp_path / "one", 5).joined()
    other = work(folder(photos), tmp_path / "other", shards)
    assert other.plan.shards == min(shards, COUNT)
    assert sorted(one) == sorted(other.joined())
    assert all(np.array_equal(one[name], column) for name, column in other.joined().items())


def test_the_same_shard_made_twice_is_the_same_file(photos, tmp_path):
    work(folder(photos), tmp_path / "out", 3)
    before = contents(tmp_path / "out")
    (tmp_path / "out" / "000001.npz").unlink()
    work(folder(photos), tmp_path / "out")
    assert contents(tmp_path / "out") == before


def test_going_on_looks_for_shards_once_not_once_for_each(photos, tmp_path, monkeypatch):
    work(folder(photos), tmp_path / "out", COUNT)
    looks = []
    finished = Shards.finished
    monkeypatch.setattr(Shards, "finished", lambda self: looks.append(self) or finished(self))
    work(folder(photos), tmp_path / "out")
    assert len(looks) == 2  # at the beginning and at the end


def test_data_of_every_kind(photos, tmp_path):
    flat = tmp_path / "flat"
    shutil.copytree(photos / "class 0", flat)
    for source in (flat, flat / "*.png"):
        joined = work(unlabelled(source), tmp_path / f"of {source.name}", 3).joined()
        assert joined["paths"].tolist() == [str(flat / f"{row:02d}.png") for row in range(10)]
        assert joined["ids"].tolist()[0].endswith("/00.png")
        assert "labels" not in joined
    rows = "".join(f"photos/class 0/{row:02d}.png,a,train\n" for row in range(10))
    (tmp_path / "shop.csv").write_text("path,label,split\n" + rows)
    joined = work(table(tmp_path / "shop.csv"), tmp_path / "of table", 3).joined()
    assert joined["paths"].tolist() == [str(photos / "class 0" / f"{row:02d}.png") for row in range(10)]
    assert joined["splits"].tolist() == ["train"] * 10
    kinds = arrays(scenes.images(9), ["x"] * 9, categories=["c"] * 9)
    joined = work(kinds, tmp_path / "of arrays", 2).joined()
    assert "paths" not in joined
    assert len(joined["embeddings"]) == 9
    assert set(joined["categories"]) == {"c"}


def test_other_data_models_and_numbers_are_refused(photos, tmp_path):
    out = tmp_path / "out"
    data = folder(photos)
    work(data, out, 3)
    before = contents(out)
    renamed = photos.parent / "renamed"
    shutil.copytree(photos, renamed)
    (renamed / "class 0" / "00.png").rename(renamed / "class 0" / "0a.png")
    refusals = {
        "another model": lambda: embed_shards(scenes.model(seed=1), data, out),
        r"other images \(30 of photos; here are 29": lambda: work(data.subset(range(29)), out),
        "other images": lambda: work(folder(renamed), out),
        "are 3, not 4: leave out --shards": lambda: work(data, out, 4),
        "choose 1 to 999,999 shards, not 0": lambda: work(data, out, 0),
        "there are no images": lambda: work(data.subset([]), out),
    }
    for message, refused in refusals.items():
        with pytest.raises(UserError, match=message):
            refused()
    labels = replace(data, label_names=("x", *data.label_names[1:]))
    with pytest.raises(UserError, match="names and labels must be the same"):
        work(labels, out)
    assert contents(out) == before
    work(data, out, 3)  # the same again is welcome


def test_another_place_of_the_same_data_is_the_same_data(photos, tmp_path):
    first = work(folder(photos), tmp_path / "out", 3).joined()
    moved = tmp_path / "elsewhere" / "photos"
    moved.parent.mkdir()
    photos.rename(moved)
    (tmp_path / "out" / "000001.npz").unlink()
    again = work(folder(moved), tmp_path / "out").joined()
    assert np.array_equal(first["paths"], again["paths"])  # as the first worker saw them


def test_folders_that_are_not_shards_are_refused(photos, tmp_path):
    with pytest.raises(UserError, match="holds other files, such as class"):
        work(folder(photos), photos, 3)
    work(folder(photos), tmp_path / "new")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot make the folder"):
        work(folder(photos), tmp_path / "file", 3)
    with pytest.raises(UserError, match="there are no shards in"):
        Shards.open(tmp_path)
    for damaged in ("{}", "[" * 100_000):
        (tmp_path / "new" / "shards.json").write_text(damaged)
        with pytest.raises(UserError, match="cannot be read"):
            Shards.open(tmp_path / "new")


def test_unreadable_images_are_listed_once_and_the_others_are_as_before(photos, tmp_path):
    data = folder(photos)
    whole = work(data, tmp_path / "whole", 4).joined()
    broken = [3, 4, 17]
    (photos / data.images.name(3)).write_bytes(b"no image")
    (photos / data.images.name(4)).unlink()
    (photos / data.images.name(17)).write_bytes(b"")
    heard = []
    made = work(data, tmp_path / "out", 4, unreadable=heard.extend)
    kept = np.setdiff1d(np.arange(COUNT), broken)
    joined = made.joined()
    assert np.array_equal(joined["embeddings"], whole["embeddings"][kept])
    assert np.array_equal(joined["ids"], whole["ids"][kept])
    listed = list(made.unreadable())
    assert sorted(name for _, name, _ in listed) == [data.images.name(row) for row in broken]
    assert sorted(heard) == sorted((name, reason) for _, name, reason in listed)
    assert "no such file" in next(reason.lower() for _, name, reason in listed if name == data.images.name(4))
    assert status(made).unreadable == tuple(listed)


def test_a_shard_of_unreadable_images_is_empty_but_there(photos, tmp_path):
    data = folder(photos)
    for row in range(10):
        (photos / data.images.name(row)).write_bytes(b"no image")
    joined = work(data, tmp_path / "out", 3).joined()
    assert joined["embeddings"].shape == (20, 32)


def test_data_out_of_reach_stop_the_work_and_lose_nothing(photos, tmp_path):
    data = folder(photos)
    out = tmp_path / "out"
    photos.rename(tmp_path / "unmounted")
    with pytest.raises(UserError, match="is photos within reach"):
        work(data, out, 3)
    assert not contents(out)
    (tmp_path / "unmounted").rename(photos)
    assert len(work(data, out).joined()["ids"]) == COUNT


def test_a_stop_keeps_whole_shards_and_the_same_call_continues(photos, tmp_path):
    data, out, seen = folder(photos), tmp_path / "out", []

    def interrupt(done, _):
        if done > 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work(data, out, 5, progress=interrupt)
    kept = contents(out)
    assert len(kept) == 2
    (out / ".000004.npz.17-abcd.partial").write_bytes(b"what a killed process leaves")
    work(data, out, progress=lambda done, total: seen.append((done, total)))
    assert contents(out).items() >= kept.items()
    assert seen == [(done, COUNT) for done in (12, 18, 24, 30)]  # what is there counts
    assert not list(out.glob(".*"))


def test_parts_are_whole_shards_and_together_everything(photos, tmp_path):
    data, out = folder(photos), tmp_path / "out"
    work(data, tmp_path / "whole", 7)
    for number, there in ((2, 2), (1, 5), (1, 5), (3, 7)):
        work(data, out, 7, part=Part(number, 3))
        assert len(contents(out)) == there
    assert contents(out) == contents(tmp_path / "whole")


def test_processes_of_this_machine_write_the_same_files(photos, tmp_path):
    data = folder(photos)
    (photos / data.images.name(3)).write_bytes(b"no image")
    heard = []
    work(data, tmp_path / "one", 4)
    work(data, tmp_path / "two", 4, workers=Workers(2), unreadable=heard.extend)
    assert contents(tmp_path / "two") == contents(tmp_path / "one")
    assert [name for name, _ in heard] == [data.images.name(3)]


def test_damaged_and_foreign_shards_are_refused_and_made_again(photos, tmp_path):
    data, out = folder(photos), tmp_path / "out"
    made = work(data, out, 3)
    before = contents(out)
    victim = out / "000001.npz"
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(bytes(content))
    with pytest.raises(
        UserError, match=r"000001.npz' cannot be used .* delete it, and the same command makes it again"
    ):
        made.joined()
    work(data.subset(range(20)), tmp_path / "other", 2)
    shutil.copy(tmp_path / "other" / "000001.npz", victim)
    with pytest.raises(UserError, match="it belongs to another folder"):
        made.joined()
    victim.unlink()
    with pytest.raises(UserError, match=r"1 of 3 shards in .* are missing"):
        made.joined()
    work(data, out)
    assert contents(out) == before


def test_status_tells_how_far_and_how_fast(photos, tmp_path):
    data, out = folder(photos), tmp_path / "out"
    made = work(data, out, 6)
    for number in range(6):
        os.utime(made.path(number), (100 + 2 * number,) * 2)
    seen = status(made)
    assert (seen.images, seen.done, seen.shards, seen.finished) == (COUNT, COUNT, 6, 6)
    assert seen.per_second == pytest.approx(2.5)
    assert seen.seconds_left == 0
    made.path(5).unlink()
    seen = status(made)
    assert (seen.done, seen.finished, seen.seconds_left) == (25, 5, pytest.approx(2.0))
