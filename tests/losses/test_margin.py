"""Margin: its equation as loops [math A8], the values of its paper, and what it needs to train."""

import pytest
import torch

from lookalike import losses
from tests.losses.cases import UNEVEN, assert_same, random_rows, rectangle, triplets
from tests.losses.loops import apart, hinge, mean_active, pairs_of, sides

DEFAULTS = {"margin": 0.2, "boundary_weight": 0.0, "learning_rate": 0.0005}
TRAINING = ["miner.name=distance_weighted", "optimiser.loss_lr=1e-3"]
TAKES_TRIPLETS = True


def margin(z, c, pos, neg, beta, rows_beta, gap=0.2, nu=0.0, separate=False, geometry="sphere"):
    """All pairs; 0 where the batch has no negative or no positive at all, as with triplets [math A21]."""
    if not any(pos) or not any(neg):
        return nu * sum(beta) + 0 * z.sum()
    return margin_listed(z, c, pairs_of(pos), pairs_of(neg), beta, rows_beta, gap, nu, separate, geometry)


def margin_listed(z, c, near, far, beta, rows_beta, gap=0.2, nu=0.0, separate=False, geometry="sphere"):
    """`beta` are the parameters, `rows_beta[i]` the one of row i."""
    d = apart(z, c, geometry)
    pull = [hinge(d[i][j] - beta[rows_beta[i]] + gap) for i, j in near]
    push = [hinge(beta[rows_beta[i]] - d[i][j] + gap) for i, j in far]
    main = mean_active(pull, z) + mean_active(push, z) if separate else mean_active(pull + push, z)
    return main + nu * sum(beta)


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
        expected = margin(z, z, *sides(UNEVEN), loss.boundary, [0] * len(UNEVEN), nu=0.1, separate=separate)
        assert_same(loss(z, torch.tensor(UNEVEN)), expected, [z, loss.boundary])

    def test_a_boundary_per_class(self):
        labels = [0, 2, 2, 1, 0, 2, 1, 3]
        loss = self.built(classes=4, boundary_weight=0.05, normalise="ball", margin=0.1)
        z = random_rows(len(labels))
        expected = margin(z, z, *sides(labels), loss.boundary, labels, gap=0.1, nu=0.05, geometry="ball")
        assert_same(loss(z, torch.tensor(labels)), expected, [z, loss.boundary])

    @pytest.mark.parametrize("classes", [None, 4])
    def test_triplets(self, classes):
        labels = [0, 2, 2, 1, 0, 2, 1, 3]
        entries = [(0, 4, 1), (1, 2, 0), (3, 6, 7), (5, 5, 2), (6, 3, 5)]  # (5, 5, 2): a switched one
        loss = self.built(classes=classes)
        z = random_rows(len(labels))
        near, far = [(a, p) for a, p, _ in entries], [(a, n) for a, _, n in entries]
        rows_beta = labels if classes else [0] * len(labels)
        expected = margin_listed(z, z, near, far, loss.boundary, rows_beta)
        assert_same(loss(z, triplets(entries, labels)), expected, [z, loss.boundary])

    def test_rectangle(self):
        z, c, pairs, (positives, negatives) = rectangle()
        labels = [1, 1, 2, 3, 3, 8, 2]
        loss = self.built(classes=9)
        c.requires_grad_()
        expected = margin(z, c, positives, negatives, loss.boundary, labels)
        assert_same(loss(z, pairs, candidates=c), expected, [z, c, loss.boundary])

    @pytest.mark.parametrize("labels", [[1, 1, 1], [0, 1, 2], [3]])
    def test_odd_batches(self, labels):
        loss = self.built(classes=4)
        z = random_rows(len(labels), seed=3)
        expected = margin(z, z, *sides(labels), loss.boundary, labels)
        assert_same(loss(z, torch.tensor(labels)), expected, [z, loss.boundary])

    def test_terms_are_counted_one_by_one(self):
        """A triplet with two active terms counts twice [math A8]. d_ap = √2 and d_an = 0 here."""
        z = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
        loss = losses.Margin(boundary=1.0).double()
        value = loss(z, triplets([(0, 1, 2)], [0, 0, 1]))
        assert value.item() == pytest.approx((2**0.5 - 1 + 0.2 + 1 + 0.2) / 2, abs=1e-12)


def test_boundaries():
    assert losses.Margin().boundary.tolist() == pytest.approx([1.2])
    assert losses.build("margin", preset="roth_0.6", classes=3).boundary.tolist() == pytest.approx([0.6] * 3)
