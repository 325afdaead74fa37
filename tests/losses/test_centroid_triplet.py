"""CentroidTriplet: its equation as loops [math A24n], the values of its paper, and what it needs to train."""

import pytest
import torch

from lookalike import losses
from lookalike.targets import Pairs
from tests.losses.cases import UNEVEN, assert_same, random_rows, rectangle
from tests.losses.loops import hinge, mean, placed, sides, taking_part

DEFAULTS = {"margin": 0.5, "normalise": "sphere"}


def centroid_triplet(z, c, pos, neg, labels, gap=0.5, geometry="sphere"):
    """`labels` of the columns."""
    rows, columns = ([placed(v, geometry) for v in vectors] for vectors in (z, c))
    present, terms = taking_part(pos, neg, len(c)), []
    for i in range(len(z)):
        if pos[i] and neg[i]:
            own = sum(columns[p] for p in pos[i]) / len(pos[i])
            far = []
            for label in {labels[n] for n in neg[i]}:
                members = [columns[j] for j in present if labels[j] == label]
                far.append(((rows[i] - sum(members) / len(members)) ** 2).sum())
            nearest = min(far, key=lambda x: x.item())
            terms.append(hinge(((rows[i] - own) ** 2).sum() - nearest + gap))
    return mean(terms, z)


class TestCentroidTriplet:
    @pytest.mark.parametrize("geometry", ["sphere", "ball", "none"])
    def test_batch(self, geometry):
        z = random_rows(len(UNEVEN))
        loss = losses.CentroidTriplet(margin=0.7, normalise=geometry)
        expected = centroid_triplet(z, z, *sides(UNEVEN), UNEVEN, gap=0.7, geometry=geometry)
        assert_same(loss(z, torch.tensor(UNEVEN)), expected, [z])
        assert expected > 0.1

    def test_rectangle_with_ids(self):
        z, c, pairs, (positives, negatives) = rectangle()
        c.requires_grad_()
        expected = centroid_triplet(z, c, positives, negatives, [1, 1, 2, 2, 3, 3, 3, 4, 8], gap=2.0)
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
        expected = centroid_triplet(z, z, *sides(labels), labels)
        assert_same(losses.CentroidTriplet()(z, torch.tensor(labels)), expected, [z])
