"""The toy [math D.4]: its data, its loss against loops, and what dropping the attraction does."""

import pytest
import torch

from lookalike.errors import UserError
from lookalike.geometry import normalise
from papers.roth.toy import VARIANTS, Variant, run_toy, second_share, segments, toy_loss, train_toy
from papers.roth.toy_picture import draw_toy, toy_numbers
from tests.fixtures.figure_rules import assert_readable


def test_the_segments_of_both_layouts(generator):
    train, test, labels = segments("diagonal", generator)
    assert torch.equal(train[:, 0], train[:, 1])
    assert train[labels == 3].amin() >= 0.85
    assert train[labels == 3].amax() <= 1.05
    assert (test[labels < 2][:, 0] == 0.2).all()
    assert (test[labels >= 2][:, 1] == 0.2).all()
    train, test, labels = segments("vertical", generator)
    assert [len(train[labels == line][:, 0].unique()) for line in range(4)] == [1] * 4
    assert [len(test[labels == line][:, 1].unique()) for line in range(4)] == [1] * 4


@pytest.mark.parametrize("switch", [0.0, 1.0])
@pytest.mark.parametrize("attracts", [True, False])
def test_the_loss_against_loops(switch, attracts, generator):
    points = normalise(torch.randn(7, 2, generator=generator, dtype=torch.float64), "sphere")
    points = 0.98 * points + 0.02  # some pairs nearer than the margin
    points[1] = points[3] + 0.01
    points = normalise(points, "sphere")
    labels = [0, 0, 0, 1, 1, 2, 2]
    near, far = [], []
    for a in range(7):
        for p in range(7):
            for n in range(7):
                if a != p and labels[a] == labels[p] and labels[a] != labels[n]:
                    near.append(0.0 if switch else (points[a] - points[p]).norm().item())
                    far.append(max(0.0, 0.1 - (points[a] - points[p if switch else n]).norm().item()))
    expected = sum(far) / len(far) + (sum(near) / len(near) if attracts else 0)
    loss = toy_loss(points, torch.tensor(labels), Variant(switch, attracts), generator)
    assert loss.item() == pytest.approx(expected, abs=1e-9)
    assert expected > 0 or switch


def test_a_seed_repeats_and_dropping_the_attraction_keeps_a_direction():
    base, again = train_toy(Variant(), seed=2), train_toy(Variant(), seed=2)
    assert torch.equal(base.train, again.train)
    assert base.second < 0.2 < 0.3 < train_toy(Variant(attracts=False), seed=2).second


def test_shares():
    assert second_share(torch.tensor([[1.0, 0.0], [2.0, 0.0]])) == pytest.approx(0)
    assert second_share(torch.eye(2)) == pytest.approx(0.5)


@pytest.mark.slow
def test_all_variants_with_progress_and_picture():
    events = []
    runs = run_toy("vertical", seeds=1, progress=lambda done, total: events.append((done, total)))
    assert events == [(at, 4) for at in range(1, 5)]
    assert list(runs) == list(VARIANTS)
    numbers = toy_numbers(runs)["base"]
    assert numbers["train"]["seeds"] == [runs["base"][0].second]
    assert 0 <= numbers["test recall@1"]["mean"] <= 1
    assert_readable(draw_toy(runs, "vertical"))


def test_mistakes():
    with pytest.raises(UserError, match="at least one seed"):
        run_toy(seeds=0)
