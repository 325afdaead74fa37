"""Labels as a list, a numpy array or names give the very value that a tensor of them gives."""

import numpy as np
import pytest
import torch

from lookalike import miners
from lookalike.catalog import settings_of
from tests.contracts.catalogue import NAMES, PAIR_NAMES, build, rows

LABELS = torch.tensor([2, 0, 1, 1, 2, 0, 3, 0])
NUMBERS = [LABELS.tolist(), LABELS.numpy(), LABELS.numpy().astype(np.uint8), LABELS.to(torch.int16)]
WORDS = np.array(["ant", "bee", "cat", "dog"])[LABELS.numpy()]


def value(name, labels):
    loss = build(name)
    torch.manual_seed(1)
    return loss(rows(8), labels)


@pytest.mark.parametrize("name", NAMES)
def test_losses_take_numbers_in_any_container(name):
    for labels in NUMBERS:
        assert torch.equal(value(name, labels), value(name, LABELS))


@pytest.mark.parametrize("name", PAIR_NAMES)
def test_losses_of_pairs_take_names(name):
    for labels in (WORDS, WORDS.tolist()):
        assert torch.equal(value(name, labels), value(name, LABELS))


@pytest.mark.parametrize("name", miners.names())
def test_miners_take_numbers_and_names(name):
    def mined(labels):
        seeded = "generator" in settings_of(miners.MEMBERS[name])
        settings = {"generator": torch.Generator().manual_seed(3)} if seeded else {}
        return miners.build(name, **settings)(rows(8), labels)

    expected = vars(mined(LABELS))
    for labels in (*NUMBERS, WORDS, WORDS.tolist()):
        for part, entries in vars(mined(labels)).items():
            assert torch.equal(entries, expected[part])
