"""Quadruplet: its equation as loops [math A14], the values of its paper, and what it needs to train."""

import pytest
import torch

from lookalike import losses, miners
from lookalike.targets import Quadruplets
from tests.losses.cases import UNEVEN, assert_same, random_rows, triplets
from tests.losses.loops import apart, distance, hinge, mean, placed
from tests.losses.test_triplet import triplet_listed

DEFAULTS = {"margin": 1.0, "second_margin": 0.5}
PRESETS = {
    "roth": {"margin": 0.2, "second_margin": 0.2},
    "doc": {"margin": 1.0, "second_margin": 0.5},
}
TRAINING = ["miner.name=distance_weighted"]
TAKES_TRIPLETS = True
SAMPLED = True  # plain labels are drawn from: the order of the batch and the draw change its value


def quadruplet(z, c, triplets, fourths, gap=1.0, second=0.5, geometry="sphere"):
    """`fourths` are (position of the triplet in the list, l) where a third class exists."""
    d = apart(z, c, geometry)
    columns = [placed(v, geometry) for v in c]
    first = [hinge(d[a][p] - d[a][n] + gap) for a, p, n in triplets]
    other = []
    for place, fourth in fourths:
        a, p, n = triplets[place]
        other.append(hinge(d[a][p] - distance(columns[n], columns[fourth]) + second))
    return mean(first, z) + mean(other, z)


class TestQuadruplet:
    labels = (0, 0, 1, 1, 2, 2, 0)
    entries = ((0, 1, 2), (2, 3, 4), (6, 0, 5), (4, 5, 1))
    fourths = ((0, 4), (1, 0), (2, 3))  # the last triplet stays without one

    def quadruplets(self):
        other = torch.tensor([4, 0, 3, 0, 0])
        complete = torch.tensor([True, True, True, False, False])
        return Quadruplets(triplets(self.entries, self.labels), other, complete)

    @pytest.mark.parametrize("preset", [None, "roth", "doc"])
    def test_quadruplets(self, preset):
        loss = losses.build("quadruplet", preset=preset)
        gap, second = (0.2, 0.2) if preset == "roth" else (1.0, 0.5)
        z = random_rows(len(self.labels))
        assert_same(loss(z, self.quadruplets()), quadruplet(z, z, self.entries, self.fourths, gap, second), [z])

    def test_quadruplets_into_candidates(self):
        z, c = random_rows(7, seed=1), random_rows(7, seed=2)
        value = losses.Quadruplet()(z, self.quadruplets(), candidates=c)
        assert_same(value, quadruplet(z, c, self.entries, self.fourths), [z, c])

    def test_fourth_sample_is_of_a_third_class(self, generator):
        loss = losses.Quadruplet(generator=generator)
        listed = triplets(self.entries, self.labels)
        labels, others = torch.tensor(self.labels), set()
        for _ in range(40):
            quadruplets = loss.complete(listed)
            assert quadruplets.complete.tolist() == [True] * 4 + [False]
            for a, n, other in zip(listed.anchor[:4], listed.negative[:4], quadruplets.other[:4], strict=True):
                assert labels[other] not in (labels[a], labels[n])
            others |= set(quadruplets.other[:1].tolist())
        assert others == {4, 5}, "uniform over both samples of the third class"

    def test_without_a_third_class_the_second_term_is_dropped(self):
        labels = [0, 0, 1, 1]
        z = random_rows(4)
        entries = [(0, 1, 2), (2, 3, 0)]
        value = losses.Quadruplet()(z, triplets(entries, labels))
        assert_same(value, triplet_listed(z, z, entries, gap=1.0), [z])

    def test_plain_labels_are_sampled_by_distance_from_the_own_generator(self):
        z, labels = random_rows(len(UNEVEN)), torch.tensor(UNEVEN)
        value = losses.Quadruplet(generator=torch.Generator().manual_seed(5))(z, labels)
        generator = torch.Generator().manual_seed(5)
        mined = miners.DistanceWeighted(generator=generator)(z, labels)
        assert value == losses.Quadruplet(generator=generator)(z, mined)
