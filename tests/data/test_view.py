"""Images as torch sees them: the same whatever process reads them, and no bad file stops an epoch."""

import numpy as np
import pytest
import torch

from lookalike import data
from lookalike.errors import UserError


@pytest.fixture
def photos(pictures):
    for kind in ("hen", "owl", "emu"):
        for place in range(4):
            pictures.save(f"{kind}/{place}.jpg")
    return pictures


def batches(dataset, count=4, size=5):
    generator = torch.Generator().manual_seed(3)
    return [torch.randint(len(dataset), (size,), generator=generator).tolist() for _ in range(count)]


def epoch(view, rows, workers, **settings):
    return list(data.loader(view, data.Tickets(rows, **settings), workers=workers))


def same(one, two):
    return all(torch.equal(a, b) for x, y in zip(one, two, strict=True) for a, b in zip(x, y, strict=True))


def test_workers_change_nothing(photos):
    dataset = data.folder(photos.root)
    view = data.AugmentedImages(dataset, data.preset("roth").resized(16, 20).train, seed=7)
    rows = batches(dataset)
    alone = epoch(view, rows, 0, epoch=2)
    assert alone[0].image.shape == (5, 3, 16, 16)
    assert alone[0].image.dtype == torch.uint8
    assert alone[1].row.tolist() == rows[1]
    assert torch.equal(alone[1].label, dataset.labels[rows[1]])
    assert same(alone, epoch(view, rows, 2, epoch=2))
    assert same(alone[2:], epoch(view, rows[2:], 0, epoch=2, first=2))
    assert not same(alone, epoch(view, rows, 0, epoch=3))
    assert not same(alone, epoch(data.AugmentedImages(dataset, view.augmentation, seed=8), rows, 0, epoch=2))


def test_the_global_random_numbers_are_left_alone(photos):
    dataset = data.folder(photos.root)
    view = data.AugmentedImages(dataset, data.preset("roth").resized(16, 20).train)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    epoch(view, batches(dataset), 0)
    assert torch.equal(before, torch.get_rng_state())


def test_an_image_used_twice_in_a_batch_is_cut_twice(photos):
    dataset = data.folder(photos.root)
    view = data.AugmentedImages(dataset, data.preset("roth").resized(16, 20).train)
    [sample] = epoch(view, [[0, 0]], 0)
    assert not torch.equal(sample.image[0], sample.image[1])


def test_set_epoch_reaches_the_sampler(photos):
    class Sampler(list):
        def set_epoch(self, number):
            self.number = number

    rows = Sampler(batches(data.folder(photos.root)))
    tickets = data.Tickets(rows, first=3)
    tickets.set_epoch(6)
    assert rows.number == 6
    assert len(tickets) == 4
    assert next(iter(tickets))[1][1:] == (6, 0, 1)


@pytest.mark.parametrize("workers", [0, 2])
def test_bad_files_are_replaced_by_their_class_and_listed(photos, workers):
    (photos.root / "hen" / "1.jpg").write_bytes(b"no image")
    (photos.root / "owl" / "2.jpg").write_bytes((photos.root / "owl" / "3.jpg").read_bytes()[:-100])
    dataset = data.folder(photos.root)
    view = data.AugmentedImages(dataset, data.preset("roth").resized(16, 20).train)
    rows = [list(range(12)), list(range(12))]
    for sample in epoch(view, rows, workers):
        assert sample.label.tolist() == dataset.labels.tolist()
        assert len(sample.row.unique()) == 10
    assert sorted(problem.path for problem in view.problems()) == ["hen/1.jpg", "owl/2.jpg"]
    assert {problem.kind for problem in view.problems()} == {"not an image", "truncated"}


def test_a_class_of_bad_files_borrows_from_others(photos):
    for place in range(4):
        (photos.root / "hen" / f"{place}.jpg").write_bytes(b"")
    dataset = data.folder(photos.root)
    view = data.AugmentedImages(dataset, data.preset("roth").resized(16, 20).evaluation)
    sample = view[dataset.label_id("hen") * 4]
    assert dataset.label_names[int(sample.label)] != "hen"
    assert len(view.problems()) == 4


def test_nothing_readable_is_one_line(photos):
    for file in photos.root.rglob("*.jpg"):
        file.write_bytes(b"x")
    view = data.AugmentedImages(data.folder(photos.root), data.preset("roth").train)
    with pytest.raises(UserError, match=r"no image of .* can be read"):
        view[0]


def test_arrays_work_as_well():
    dataset = data.arrays(np.zeros((4, 9, 9), np.uint8), [0, 0, 1, 1])
    [sample] = epoch(data.AugmentedImages(dataset, data.preset("glyphs").train), [[0, 3]], 0)
    assert sample.image.shape == (2, 3, 32, 32)
