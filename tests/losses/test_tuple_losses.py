"""Losses over sampled tuples, boundaries per class, and the single random positive of N-pair, against their loops."""

import pytest
import torch

from lookalike import losses, miners
from lookalike.targets import Pairs, Quadruplets, Triplets
from tests.losses import further_oracles, oracles, ranking_oracles
from tests.losses.cases import UNEVEN, assert_same, random_rows, rectangle

LIST = [(0, 2, 1), (0, 5, 3), (1, 4, 0), (3, 6, 9), (8, 1, 7), (9, 0, 4), (9, 9, 2)]  # the last as `switched` makes it
INVALID = (0, 0, 0)  # stands in the list with valid = False


def triplets(entries=LIST, labels=UNEVEN):
    columns = [torch.tensor(part) for part in zip(*entries, INVALID, strict=True)]
    valid = torch.tensor([True] * len(entries) + [False])
    return Triplets(*columns, valid, torch.tensor(labels))


LISTED = {
    "contrastive": (
        {},
        lambda z, c, t: oracles.contrastive_listed(z, c, [(a, p) for a, p, _ in t], [(a, n) for a, _, n in t]),
    ),
    "triplet": ({}, oracles.triplet_listed),
    "triplet squared": ({"squared": True}, lambda z, c, t: oracles.triplet_listed(z, c, t, squared=True)),
    "triplet cosine": ({"similarity": "cosine"}, lambda z, c, t: oracles.triplet_listed(z, c, t, cosine=True)),
    "triplet sum": ({"reduction": "sum"}, lambda z, c, t: oracles.triplet_listed(z, c, t) * len(t)),
    "snr": ({}, ranking_oracles.snr_listed),
}


@pytest.mark.parametrize("name", LISTED)
def test_list_of_triplets(name):
    settings, oracle = LISTED[name]
    loss = losses.build(name.split()[0], **settings)
    z = random_rows(len(UNEVEN))
    assert_same(loss(z, triplets()), oracle(z, z, LIST), [z])


@pytest.mark.parametrize("name", LISTED)
def test_list_of_triplets_into_candidates(name):
    settings, oracle = LISTED[name]
    loss = losses.build(name.split()[0], **settings)
    z, c, _, _ = rectangle()
    entries = [(0, 1, 4), (2, 2, 8), (3, 5, 0), (6, 3, 7)]
    columns = [1, 1, 2, 2, 3, 3, 3, 4, 8]
    c.requires_grad_()
    assert_same(loss(z, triplets(entries, columns), candidates=c), oracle(z, c, entries), [z, c])


@pytest.mark.parametrize("name", LISTED)
def test_no_valid_triplet(name):
    settings, _ = LISTED[name]
    loss = losses.build(name.split()[0], **({"sum_weight": 0.0} if name == "snr" else settings))
    z = random_rows(len(UNEVEN))
    value = loss(z, triplets([]))
    assert value == 0
    assert torch.autograd.grad(value, z)[0].abs().max() == 0


def test_all_triplets_equal_the_list_of_them_all():
    """Summed by sorting or one by one: SNR takes the mean of the active ones of either."""
    z = random_rows(len(UNEVEN))
    listed = triplets(oracles.listed(*oracles.sides(UNEVEN)))
    assert_same(losses.SNR()(z, torch.tensor(UNEVEN)), losses.SNR()(z, listed), [z])


class TestMargin:
    def built(self, **settings):
        loss = losses.Margin(**settings).double()
        with torch.no_grad():
            loss.boundary.copy_(torch.linspace(0.7, 1.3, len(loss.boundary)))
        return loss

    @pytest.mark.parametrize("separate", [False, True])
    def test_all_pairs(self, separate):
        loss = self.built(reduction="separate" if separate else "active", boundary_weight=0.1)
        z = random_rows(len(UNEVEN))
        expected = oracles.margin(
            z, z, *oracles.sides(UNEVEN), loss.boundary, [0] * len(UNEVEN), nu=0.1, separate=separate
        )
        assert_same(loss(z, torch.tensor(UNEVEN)), expected, [z, loss.boundary])

    def test_a_boundary_per_class(self):
        labels = [0, 2, 2, 1, 0, 2, 1, 3]
        loss = self.built(classes=4, boundary_weight=0.05, normalise="ball", margin=0.1)
        z = random_rows(len(labels))
        expected = oracles.margin(
            z, z, *oracles.sides(labels), loss.boundary, labels, gap=0.1, nu=0.05, geometry="ball"
        )
        assert_same(loss(z, torch.tensor(labels)), expected, [z, loss.boundary])

    @pytest.mark.parametrize("classes", [None, 4])
    def test_triplets(self, classes):
        labels = [0, 2, 2, 1, 0, 2, 1, 3]
        entries = [(0, 4, 1), (1, 2, 0), (3, 6, 7), (5, 5, 2), (6, 3, 5)]  # (5, 5, 2): a switched one
        loss = self.built(classes=classes)
        z = random_rows(len(labels))
        near, far = [(a, p) for a, p, _ in entries], [(a, n) for a, _, n in entries]
        rows_beta = labels if classes else [0] * len(labels)
        expected = oracles.margin_listed(z, z, near, far, loss.boundary, rows_beta)
        assert_same(loss(z, triplets(entries, labels)), expected, [z, loss.boundary])

    def test_rectangle(self):
        z, c, pairs, (positives, negatives) = rectangle()
        labels = [1, 1, 2, 3, 3, 8, 2]
        loss = self.built(classes=9)
        c.requires_grad_()
        expected = oracles.margin(z, c, positives, negatives, loss.boundary, labels)
        assert_same(loss(z, pairs, candidates=c), expected, [z, c, loss.boundary])

    @pytest.mark.parametrize("labels", [[1, 1, 1], [0, 1, 2], [3]])
    def test_odd_batches(self, labels):
        loss = self.built(classes=4)
        z = random_rows(len(labels), seed=3)
        expected = oracles.margin(z, z, *oracles.sides(labels), loss.boundary, labels)
        assert_same(loss(z, torch.tensor(labels)), expected, [z, loss.boundary])

    def test_terms_are_counted_one_by_one(self):
        """A triplet with two active terms counts twice [math A8]. d_ap = √2 and d_an = 0 here."""
        z = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
        loss = losses.Margin(boundary=1.0).double()
        value = loss(z, triplets([(0, 1, 2)], [0, 0, 1]))
        assert value.item() == pytest.approx((2**0.5 - 1 + 0.2 + 1 + 0.2) / 2, abs=1e-12)


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
        assert_same(
            loss(z, self.quadruplets()), ranking_oracles.quadruplet(z, z, self.entries, self.fourths, gap, second), [z]
        )

    def test_quadruplets_into_candidates(self):
        z, c = random_rows(7, seed=1), random_rows(7, seed=2)
        value = losses.Quadruplet()(z, self.quadruplets(), candidates=c)
        assert_same(value, ranking_oracles.quadruplet(z, c, self.entries, self.fourths), [z, c])

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
        assert_same(value, oracles.triplet_listed(z, z, entries, gap=1.0), [z])

    def test_plain_labels_are_sampled_by_distance_from_the_own_generator(self):
        z, labels = random_rows(len(UNEVEN)), torch.tensor(UNEVEN)
        value = losses.Quadruplet(generator=torch.Generator().manual_seed(5))(z, labels)
        generator = torch.Generator().manual_seed(5)
        mined = miners.DistanceWeighted(generator=generator)(z, labels)
        assert value == losses.Quadruplet(generator=generator)(z, mined)


class TestOnePositive:
    @pytest.mark.parametrize("name", ["n_pair", "angular"])
    def test_is_the_loss_of_the_pairs_it_draws(self, name):
        loss = losses.build(name, positives="one")
        pairs = loss.targets(torch.tensor(UNEVEN), torch.Generator().manual_seed(3))
        everyone = Pairs.within(torch.tensor(UNEVEN))
        assert torch.equal(pairs.positive.sum(1), everyone.positive.any(1).long())
        assert (everyone.positive | ~pairs.positive).all()
        assert torch.equal(pairs.negative, everyone.negative)
        positives = [row.nonzero().flatten().tolist() for row in pairs.positive]
        z = random_rows(len(UNEVEN))
        oracle = oracles.n_pair if name == "n_pair" else oracles.angular
        assert_same(loss(z, pairs), oracle(z, z, positives, oracles.sides(UNEVEN)[1]), [z])

    def test_same_generator_same_positives(self):
        loss = losses.NPair(positives="one")
        labels = torch.tensor(UNEVEN)
        first, second = (loss.targets(labels, torch.Generator().manual_seed(7)) for _ in range(2))
        assert torch.equal(first.positive, second.positive)

    def test_plain_labels_draw_one_positive_too(self):
        """With positives="one" the value is one of those the possible positives give."""
        labels, z = [0, 0, 0, 1], random_rows(4)
        values = []
        for choice in ([1, 0, 0], [1, 0, 1], [1, 2, 0], [1, 2, 1], [2, 0, 0], [2, 0, 1], [2, 2, 0], [2, 2, 1]):
            positives = [[p] for p in choice] + [[]]
            values.append(oracles.n_pair(z, z, positives, oracles.sides(labels)[1]).item())
        torch.manual_seed(0)
        for _ in range(5):
            value = losses.NPair(positives="one")(z, torch.tensor(labels)).item()
            assert min(abs(value - x) for x in values) < 1e-9


class TestCentroidTriplet:
    @pytest.mark.parametrize("geometry", ["sphere", "ball", "none"])
    def test_batch(self, geometry):
        z = random_rows(len(UNEVEN))
        loss = losses.CentroidTriplet(margin=0.7, normalise=geometry)
        expected = further_oracles.centroid_triplet(z, z, *oracles.sides(UNEVEN), UNEVEN, gap=0.7, geometry=geometry)
        assert_same(loss(z, torch.tensor(UNEVEN)), expected, [z])
        assert expected > 0.1

    def test_rectangle_with_ids(self):
        z, c, pairs, (positives, negatives) = rectangle()
        c.requires_grad_()
        expected = further_oracles.centroid_triplet(z, c, positives, negatives, [1, 1, 2, 2, 3, 3, 3, 4, 8], gap=2.0)
        loss = losses.CentroidTriplet(margin=2.0)
        assert_same(loss(z, pairs, candidates=c), expected, [z, c])

    def test_classes_read_from_masks(self):
        loss = losses.CentroidTriplet()
        z, pairs = random_rows(len(UNEVEN)), Pairs.within(torch.tensor(UNEVEN))
        assert_same(loss(z, Pairs(pairs.positive, pairs.negative)), loss(z, pairs), [z])
        pairs = Pairs.across(torch.tensor(UNEVEN), torch.tensor([900, 4, 4, 17, 900]))
        c = random_rows(5, seed=1)
        masks = Pairs(pairs.positive, pairs.negative)
        assert_same(loss(z, masks, candidates=c), loss(z, pairs, candidates=c), [z, c])

    @pytest.mark.parametrize("labels", [[3, 3, 3], [5, 1, 9], [7], [7, 7, 1], [0, 0, 0, 1, 2]])
    def test_odd_batches(self, labels):
        z = random_rows(len(labels), seed=3)
        expected = further_oracles.centroid_triplet(z, z, *oracles.sides(labels), labels)
        assert_same(losses.CentroidTriplet()(z, torch.tensor(labels)), expected, [z])


def test_the_slope_and_threshold_of_siglip_learn():
    loss = losses.SigLIP(scale=3.0, bias=-1.0).double()
    z = random_rows(len(UNEVEN))
    expected = further_oracles.siglip(z, z, *oracles.sides(UNEVEN), loss.log_scale.exp(), loss.bias)
    assert_same(loss(z, torch.tensor(UNEVEN)), expected, [z, loss.log_scale, loss.bias])
