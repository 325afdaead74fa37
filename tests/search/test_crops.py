"""Parts of photos: the correlation against plain loops, and what is called a crop."""

from contextlib import closing

import numpy as np
import pytest
import torch
from PIL import Image

from lookalike.search import Index
from lookalike.search.adding.update import digest_of
from lookalike.search.crops import FLAT, GreyPhoto, correlation
from lookalike.search.items import Item, Stamp
from lookalike.search.repeats import crops, repeats
from tests.search.conftest import photo


def scene(seed, height=120, width=160):
    """Something with structure at all sizes."""
    draw, array = np.random.default_rng(seed), np.zeros((height, width, 3))
    for cells in (3, 6, 12, 24):
        coarse = Image.fromarray(draw.integers(0, 255, (cells, cells, 3), np.uint8)).resize((width, height))
        array += np.asarray(coarse, float) / cells**0.5
    return Image.fromarray((255 * array / array.max()).astype(np.uint8))


def grey(picture):
    return GreyPhoto.of(torch.from_numpy(np.array(picture)).permute(2, 0, 1))


def test_the_correlation_is_that_of_plain_loops():
    draw = np.random.default_rng(0)
    whole, part = draw.integers(0, 255, (11, 14)).astype(float), draw.integers(0, 255, (9, 10), np.uint8)
    best = -1.0
    for share in (11 / 9, 11 / 9 * 0.6):  # the sizes that a step of 0.6 gives
        size = (round(10 * share), round(9 * share))
        if min(size) < 8:
            continue
        window = np.asarray(Image.fromarray(part.astype(np.float32)).resize(size, Image.Resampling.BILINEAR), float)
        for row in range(11 - size[1] + 1):
            for column in range(14 - size[0] + 1):
                seen = whole[row : row + size[1], column : column + size[0]]
                best = max(best, float(np.corrcoef(seen.ravel(), window.ravel())[0, 1]))
    assert correlation(whole, part, 0.6) == pytest.approx(best, abs=1e-9)
    flat = np.full((9, 10), 100, np.uint8)
    flat[0, 0] += int(FLAT)
    assert correlation(whole, flat, 0.6) == -1


@pytest.mark.parametrize("cut", [0.04, 0.08, 0.2, 0.4])
@pytest.mark.parametrize("share", [1.0, 0.5, 1.5])
def test_a_part_is_found_at_any_size(cut, share):
    for seed in range(4):
        picture, draw = scene(seed), np.random.default_rng(seed)
        width, height = int(160 * (1 - cut)), int(120 * (1 - cut))
        left, top = int(draw.integers(0, 161 - width)), int(draw.integers(0, 121 - height))
        part = picture.crop((left, top, left + width, top + height))
        part = part.resize((int(width * share), int(height * share))).point(lambda level: int(0.8 * level + 20))
        assert grey(part).within(grey(picture)) > 0.93
        assert grey(part).within(grey(scene(seed + 10))) == 0
    assert grey(picture.crop((0, 0, 60, 120))).within(grey(picture)) > 0.93  # of one side alone


def test_crops_are_a_level_of_their_own(tmp_path):
    picture = scene(1)
    pictures = {
        "a": picture,
        "b": picture.crop((10, 8, 150, 110)),
        "c": picture.resize((80, 60)),
        "d": scene(2),
        "e": photo("figs", 1, side=120),
    }
    for name, content in pictures.items():
        content.save(tmp_path / f"{name}.png")
    (tmp_path / "f.png").write_bytes(b"nothing")
    with closing(Index.create(tmp_path / "index", dim=2)) as index:
        names = [*pictures, "f"]
        files = {name: tmp_path / f"{name}.png" for name in names}
        stamps = {name: Stamp(1, 1, digest_of(file.read_bytes())) for name, file in files.items()}
        items = [Item(name, str(files[name]), stamp=stamps[name]) for name in names]
        index.store.put([*items, Item("g")], np.eye(2, dtype=np.float32)[[0, 0, 0, 0, 1, 0, 0]])
        told = []
        groups = repeats(index.store, 2.0, cropped=lambda done, total: told.append((done, total)))
        found = {group.level: [item.id for item in group.items] for group in groups}
        assert found == {"same picture": ["a", "c"], "crop": ["a", "b", "c"]}
        assert told[-1] == (7, 7)
        assert [group.level for group in repeats(index.store, 2.0)] == ["same picture"]
        assert [[item.id for item in group.items] for group in crops(index.store)] == [["a", "b", "c"]]
        assert all(0.93 < group.similarity <= 1 for group in crops(index.store))


def test_crops_across_two_indexes(tmp_path):
    scene(3).save(tmp_path / "whole.png")
    scene(3).crop((0, 0, 130, 100)).save(tmp_path / "part.png")
    opened = []
    for name in ("whole", "part"):
        file = tmp_path / f"{name}.png"
        index = Index.create(tmp_path / f"index {name}", dim=2)
        item = Item("a", str(file), root=name, stamp=Stamp(1, 1, digest_of(file.read_bytes())))
        index.store.put([item], np.eye(1, 2, dtype=np.float32))
        opened.append(index)
    (group,) = crops(opened[0].store, opened[1].store)
    assert sorted(str(item.root) for item in group.items) == ["part", "whole"]
    for index in opened:
        index.close()
